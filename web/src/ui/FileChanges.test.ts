import { describe, expect, it } from "vitest";
import { byFile } from "./FileChanges";

const DIFF = `diff --git a/a b.txt b/a b.txt
index 5626abf..814f4a4 100644
--- a/a b.txt
+++ b/a b.txt
@@ -1 +1,2 @@
-one
+two
+++ b/not a name
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
index 6178079..0000000
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-b
diff --git a/logo.png b/logo.png
new file
It is no text, or too large to be shown.
`;

describe("the lines of each file", () => {
  it("are found by its path, from the first place on", () => {
    const found = byFile(DIFF);
    expect([...found.keys()]).toEqual(["a b.txt", "gone.txt", "logo.png"]);
    expect(found.get("a b.txt")).toBe("@@ -1 +1,2 @@\n-one\n+two\n+++ b/not a name");
    expect(found.get("gone.txt")).toBe("@@ -1 +0,0 @@\n-b");
  });

  it("are none where nothing differs", () => {
    expect(byFile("").size).toBe(0);
  });
});
