import { describe, expect, it } from "vitest";
import { grown, type Listing, overlaid, placed } from "./pagedList";

interface One {
  readonly id: string;
  readonly at: number;
}
const order = (a: One, b: One): number => b.at - a.at;
const row = (at: number, id = `r${at}`): One => ({ id, at });
const list = (ats: readonly number[], next: string | null = "more"): Listing<One> => ({
  rows: ats.map((at) => row(at)),
  next,
});
const ats = (listing: Listing<One>): readonly number[] => listing.rows.map((one) => one.at);

describe("a list that is loaded page by page", () => {
  it("keeps what is behind a first page that came again", () => {
    const known = list([9, 8, 7, 6, 5], "5");
    expect(overlaid(known, list([10, 9, 8], "8"), order)).toEqual({
      rows: [10, 9, 8, 7, 6, 5].map((at) => row(at)),
      next: "5",
    });
  });
  it("moves what changed to its new place, once", () => {
    const page = { rows: [row(11, "r6"), row(9), row(8)], next: "8" };
    expect(overlaid(list([9, 8, 7, 6, 5], "5"), page, order).rows.map((one) => one.id)).toEqual([
      "r6",
      "r9",
      "r8",
      "r7",
      "r5",
    ]);
  });
  it("forgets what the first page should have shown and did not", () => {
    expect(ats(overlaid(list([9, 8, 7, 6]), list([9, 7], "7"), order))).toEqual([9, 7, 6]);
  });
  it("begins anew when more is new than fits a page, or when the page is all there is", () => {
    expect(overlaid(list([9, 8, 7]), list([30, 29], "29"), order)).toEqual(list([30, 29], "29"));
    expect(overlaid(list([9, 8, 7]), list([9], null), order)).toEqual(list([9], null));
  });
  it("grows at its end without doubles", () => {
    expect(grown(list([9, 8], "8"), list([8, 7], null))).toEqual(list([9, 8, 7], null));
  });
  it("puts a row into its place, or nowhere when that is not loaded", () => {
    expect(ats(placed(list([9, 7]), row(8), true, order))).toEqual([9, 8, 7]);
    expect(ats(placed(list([9, 7]), row(1), true, order))).toEqual([9, 7]);
    expect(ats(placed(list([9, 7], null), row(1), true, order))).toEqual([9, 7, 1]);
    expect(ats(placed(list([9, 7]), row(7), true, order))).toEqual([9, 7]); // the last one, changed in its place
    expect(ats(placed(list([9, 7]), row(7), false, order))).toEqual([9]);
  });
});
