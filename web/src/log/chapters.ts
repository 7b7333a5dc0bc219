/** What a reset and a compaction do to the view of a session. Nothing is taken out of it: only the model sees less. */
import type { ChapterOpened, ChapterRejoined, SummaryFailed, SummaryRequested, SummaryStarted, SummaryWritten, ToolResultsTrimmed, LogRecord, ResetPolicy, ResetPolicySet, ResetPostponed } from "../api.gen";
import { actorWords, byWhom, clock, count } from "../words";
import { AT_REST, type SummaryItem } from "./model";
import { type Draft, remark } from "./reduce";

type ChapterEvent = ResetPolicySet | ResetPostponed | ChapterOpened | ChapterRejoined | ToolResultsTrimmed | SummaryRequested | SummaryStarted | SummaryWritten | SummaryFailed;

/** The code of a summary that was cut by a message or a stop: what was asked for is still wanted. */
const INTERRUPTED = "interrupted";

export function chapterHappened(view: Draft, record: LogRecord, event: ChapterEvent): void {
  const { version, at } = record;
  const here = { key: `v${version}`, version, at };
  switch (event.kind) {
    case "ResetPolicySet":
      remark(view, record, `${byWhom(event.by) === "you" ? "You" : actorWords(event.by)} chose when this session is reset: ${policyWords(event.policy)}`);
      break;
    case "ResetPostponed": {
      const limit = event.until === null ? "" : `. It is reset at ${clock(event.until)} at the latest`;
      remark(view, record, `Not reset yet: ${event.blockers.map((one) => one.reason).join("; ")}${limit}`, "warning");
      break;
    }
    case "ChapterOpened":
      view.items.push({
        ...here, kind: "chapter", chapter: event.chapter, rule: event.rule, reason: event.reason, by: actorWords(event.by), actor: event.by, kept: event.kept ?? [],
        stopped: event.stopped ?? [], note: event.hand_over ?? "", noteFrom: event.hand_over_from ?? "", undone: false,
      });
      view.resets = [...view.resets, version];
      view.compaction = AT_REST;
      view.context = 0;
      break;
    case "ChapterRejoined": {
      const undone = view.resets.at(-1);
      view.items = view.items.map((item) => (item.kind === "chapter" && item.version === undone ? { ...item, undone: true } : item));
      view.resets = view.resets.slice(0, -1);
      view.compaction = AT_REST;
      remark(view, record, `The reset was undone by ${byWhom(event.by)}: the model sees the chapter before again`);
      break;
    }
    case "ToolResultsTrimmed": {
      const what = event.results === 1 ? "1 tool result was" : `${event.results} tool results were`;
      remark(view, record, `${what} ${event.keep > 0 ? "cut" : "replaced by notes"} for the model, about ${count(event.tokens_before)} → ${count(event.tokens_after)} tokens: ${event.reason}`);
      view.context = event.tokens_after;
      break;
    }
    case "SummaryRequested":
      view.compaction = { ...view.compaction, wanted: true };
      remark(view, record, event.purpose === "hand_over"
        ? `A reset was asked for by ${byWhom(event.by)}. The agent writes a note for the next chapter first`
        : `A shorter context was asked for by ${byWhom(event.by)}${event.instructions ? `: ${event.instructions}` : ""}`);
      break;
    case "SummaryStarted":
      view.compaction = { ...view.compaction, trying: true };
      if (event.purpose === "hand_over") break;
      put(view, {
        ...here, kind: "summary", state: "trying", covers: event.covers_turn, step: event.covers_step ?? 0, attempt: event.attempt, source: "model", model: event.model,
        before: event.tokens, after: 0, reason: event.reason, text: "", problem: null, againAt: null, replaced: false,
      }, (last) => last.state === "failed" && last.covers === event.covers_turn && last.step === (event.covers_step ?? 0) && view.items.at(-1) === last);
      break;
    case "SummaryWritten":
      if (event.purpose === "hand_over") {
        view.compaction = AT_REST;
        break;
      }
      view.compaction = { wanted: event.source === "digest" && view.compaction.wanted, trying: false };
      if (event.source === "model") {
        view.items = view.items.map((item) => (item.kind === "summary" && item.source === "digest" && inChapter(view, item.version) ? { ...item, replaced: true } : item));
      }
      put(view, {
        ...here, kind: "summary", state: "done", covers: event.covers_turn, step: event.covers_step ?? 0, attempt: 0, source: event.source, model: event.model,
        before: event.tokens_before, after: event.tokens_after, reason: event.reason, text: event.summary, problem: null, againAt: null, replaced: false,
      }, (last) => last.state === "trying");
      view.context = event.tokens_after || view.context;
      break;
    case "SummaryFailed": {
      if (event.purpose === "hand_over") {
        view.compaction = { wanted: event.retry_at !== null, trying: false };
        remark(view, record, `No note for the next chapter: ${event.problem.message}`, "warning");
        break;
      }
      const cut = event.problem.code === INTERRUPTED;
      view.compaction = { wanted: cut && view.compaction.wanted, trying: false };
      put(view, {
        ...here, kind: "summary", state: "failed", covers: event.covers_turn, step: event.covers_step ?? 0, attempt: event.attempt, source: "model", model: "",
        before: 0, after: 0, reason: "", text: "", problem: event.problem, againAt: event.retry_at, replaced: false,
      }, (last) => last.state === "trying");
      break;
    }
  }
}

const inChapter = (view: Draft, version: number): boolean => version > (view.resets.at(-1) ?? 0);

/** One line for one compaction, however often it was tried: in the place of the last one if that is the same. */
function put(view: Draft, item: SummaryItem, same: (last: SummaryItem) => boolean): void {
  const index = view.items.findLastIndex((known) => known.kind === "summary");
  const last = view.items[index];
  if (last?.kind !== "summary" || !same(last)) view.items.push(item);
  else view.items[index] = { ...item, key: last.key, at: last.at, model: item.model || last.model, before: item.before || last.before };
}

export function policyWords(policy: ResetPolicy): string {
  const given = Object.entries(policy).filter(([, value]) => value !== null && value !== undefined);
  return given.length === 0 ? "as its profile says" : given.map(([name, value]) => `${name} = ${String(value)}`).join(", ");
}
