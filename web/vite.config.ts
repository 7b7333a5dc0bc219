import { createHash } from "node:crypto";

import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

const PUBLIC_FILES = [
  ...["theme.js", "logo.svg", "logo-maskable.svg", "manifest.webmanifest"],
  ...["icon-180.png", "icon-192.png", "icon-512.png", "badge-96.png"],
];

/** What was built, by the names of its files: they carry the hashes of their contents. */
function stamp(): Plugin {
  return {
    name: "holdfast-stamp",
    enforce: "post", // after the page itself was written
    generateBundle(_, bundle) {
      const build = createHash("sha256").update(Object.keys(bundle).sort().join("\n")).digest("hex").slice(0, 16);
      const page = bundle["index.html"];
      if (page?.type !== "asset") throw new Error("the page is missing");
      page.source = String(page.source).replace(
        "</title>",
        `</title>\n<meta name="holdfast-build" content="${build}">`,
      );
      this.emitFile({ type: "asset", fileName: "build.json", source: `${JSON.stringify({ build })}\n` });
      // What the service worker keeps for a reload without the gateway.
      const files = [...Object.keys(bundle).filter((name) => name !== "index.html"), ...PUBLIC_FILES].sort();
      this.emitFile({
        type: "asset",
        fileName: "files.txt",
        source: `${[build, ...files.map((name) => `/${name}`)].join("\n")}\n`,
      });
    },
  };
}

export default defineConfig({
  plugins: [stamp()],
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
