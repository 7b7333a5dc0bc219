import { describe, expect, it } from "vitest";
import { clearBottom } from "./toasts";

const toasts = { left: 500, right: 970, height: 60 };
const composer = { left: 300, right: 980, top: 700, bottom: 780 };

describe("where the toasts stand", () => {
  it("is the corner, when nothing of it must stay clear", () => {
    expect(clearBottom([], toasts, 784)).toBe(784);
    expect(clearBottom([{ ...composer, left: 0, right: 400 }], toasts, 784)).toBe(784);
  });
  it("is above the composer, and above an answer that stands over it", () => {
    expect(clearBottom([composer], toasts, 784)).toBe(692);
    expect(clearBottom([{ left: 300, right: 900, top: 600, bottom: 690 }, composer], toasts, 784)).toBe(592);
  });
  it("is between two of them, when there is room", () => {
    expect(clearBottom([{ left: 300, right: 900, top: 100, bottom: 400 }, composer], toasts, 784)).toBe(692);
  });
});
