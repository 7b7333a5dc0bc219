import { describe, expect, it, test } from "vitest";
import { age, asYou, count, dollars, duration, elapsed, lasted, plural, size, stoppedBy } from "./text";

const MIN = 60_000;
const HOUR = 60 * MIN;

describe("one set of units", () => {
  test.each([
    [0, "0 B"],
    [1023, "1023 B"],
    [1024, "1.0 KiB"],
    [10 * 1024, "10 KiB"],
    [1.5 * 1024 ** 2, "1.5 MiB"],
    [2000 * 1024 ** 3, "2000 GiB"],
  ])("%s bytes are %s", (bytes, said) => expect(size(bytes)).toBe(said));

  test.each([
    [0, "< 0.1 s"],
    [120, "0.1 s"],
    [9_940, "9.9 s"],
    [10_000, "10 s"],
    [MIN + 1_000, "1 min 1 s"],
    [10 * MIN + 1_000, "10 min"],
    [HOUR + MIN, "1 h 1 min"],
    [49 * HOUR, "2 days"],
  ])("%s ms were %s", (ms, said) => expect(duration(ms)).toBe(said));

  test.each([
    [999, "999"],
    [9_999, "9,999"],
    [10_000, "10k"],
    [999_499, "999k"],
    [999_500, "1.0M"],
    [2_340_000, "2.3M"],
  ])("%s tokens are %s", (tokens, said) => expect(count(tokens)).toBe(said));

  it("says whole seconds of what goes on, and minutes of what is looked at for hours", () => {
    expect([elapsed(-5), elapsed(1_999), elapsed(59_999)]).toEqual(["0 s", "1 s", "59 s"]);
    expect([lasted(-5), lasted(999), lasted(1_000)]).toEqual(["less than 1 s", "less than 1 s", "1 s"]);
    expect([age(MIN - 1), age(MIN + 30_000), age(2 * HOUR + MIN)]).toEqual(["< 1 min", "1 min", "2 h 1 min"]);
  });

  it("never says that something cost nothing when it cost little", () => {
    expect([dollars(0), dollars(0.004), dollars(1.5)]).toEqual(["$0.00", "< $0.01", "$1.50"]);
  });
});

describe("words", () => {
  it("calls whoever reads them you", () => {
    expect(stoppedBy("stopped by web")).toBe("stopped by you");
    expect(stoppedBy("stopped by device 7f")).toBe("stopped by you");
    expect(stoppedBy("stopped by the agent of session s1")).toBe("stopped by the agent of session s1");
    expect(asYou("archived by cli")).toBe("archived by you");
  });

  it("counts one as one", () => {
    expect([plural(1, "task"), plural(0, "task"), plural(2_000, "entry", "entries")]).toEqual([
      "1 task",
      "0 tasks",
      "2,000 entries",
    ]);
  });
});
