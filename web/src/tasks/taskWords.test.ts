import { describe, expect, it } from "vitest";
import type { TaskView } from "../api/types.gen";
import { canRerun, canStop, endWords, exitWords, starter, stoppedBy } from "./taskWords";

const task = (change: Partial<TaskView>): TaskView =>
  ({
    id: "t",
    kind: "process",
    state: "done",
    reason: "",
    exit_code: null,
    signal: "",
    ended_by: "",
    left_by: "",
    worker: "",
    started_by: "web",
    ...change,
  }) as TaskView;

describe("what is said of a task", () => {
  it("names the reader as you, and nobody as a client", () => {
    expect(stoppedBy(task({ ended_by: "web (by force)" }))).toBe("stopped by you (by force)");
    expect(stoppedBy(task({ ended_by: "cli" }))).toBe("stopped by you");
    expect(stoppedBy(task({ ended_by: "the agent of session 4f" }))).toBe("stopped by the agent of session 4f");
    expect(stoppedBy(task({}))).toBe("");
    expect(endWords(task({ reason: "stopped by web (by force): killed by SIGKILL" }))).toBe(
      "stopped by you (by force): killed by SIGKILL",
    );
    expect(endWords(task({ reason: "stopped by the clock: killed by SIGTERM" }))).toBe(
      "stopped by the clock: killed by SIGTERM",
    );
  });
  it("says who started it", () => {
    expect(starter(task({ started_by: "cli" }))).toBe("you");
    expect(starter(task({ started_by: "the agent of session 4f" }))).toBe("agent");
    expect(starter(task({ started_by: "the board", kind: "card" }))).toBe("board");
    expect(starter(task({ started_by: "the clock" }))).toBe("other");
  });
  it("says no exit code that nobody saw", () => {
    expect(exitWords(task({ exit_code: 0 }))).toBe("0");
    expect(exitWords(task({ state: "lost" }))).toBe("unknown");
    expect(exitWords(task({ state: "stopped", signal: "SIGTERM" }))).toBe("SIGTERM");
    expect(exitWords(task({ state: "running" }))).toBe("–");
  });
});

describe("what can be done with a task", () => {
  it("is offered only where it can be done", () => {
    expect([canStop(task({ state: "running" })), canStop(task({}))]).toEqual([true, false]);
    expect(canRerun(task({}))).toBe(true);
    expect(canRerun(task({ state: "running" }))).toBe(false);
    expect(canRerun(task({ left_by: "u" }))).toBe(false);
    expect(canRerun(task({ kind: "agent", worker: "t" }))).toBe(true);
    expect(canRerun(task({ kind: "agent", worker: "s" }))).toBe(false);
    expect(canRerun(task({ kind: "card", worker: "t" }))).toBe(false);
  });
});
