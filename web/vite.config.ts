import { createHash } from "node:crypto";
import tailwindcss from "@tailwindcss/vite";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

/** What was built, by the names of its files: they carry the hashes of their contents. */
function stamp(): Plugin {
  return {
    name: "holdfast-stamp",
    generateBundle(_, bundle) {
      const build = createHash("sha256").update(Object.keys(bundle).sort().join("\n")).digest("hex").slice(0, 16);
      this.emitFile({ type: "asset", fileName: "build.json", source: `${JSON.stringify({ build })}\n` });
    },
  };
}

export default defineConfig({
  plugins: [tailwindcss(), stamp()],
  build: {
    outDir: "../src/holdfast/gateway/static",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the policy of the page allows no data: addresses
    modulePreload: { polyfill: false },
    target: ["chrome123", "firefox128", "safari17.5"],
    sourcemap: false,
    reportCompressedSize: false,
    rolldownOptions: {
      onLog: (level, log, next) => {
        if (log.code !== "MODULE_LEVEL_DIRECTIVE") next(level, log); // "use client" means nothing here
      },
    },
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
