/** What a reset and a compaction do to the view of a session. Nothing is taken out of it: only the model sees less. */
import type {
  ChapterOpened,
  ChapterRejoined,
  LogRecord,
  SummaryFailed,
  SummaryRequested,
  SummaryStarted,
  SummaryWritten,
  ToolResultsTrimmed,
} from "../api/types.gen";
import { actorWords } from "../text";
import { type Draft, notice } from "./draft";
import { AT_REST, type SummaryItem } from "./model";
import { INTERRUPTED } from "./sentences";

type ChapterEvent =
  | ChapterOpened
  | ChapterRejoined
  | ToolResultsTrimmed
  | SummaryRequested
  | SummaryStarted
  | SummaryWritten
  | SummaryFailed;

const NO_SUMMARY = {
  kind: "summary",
  attempt: 0,
  source: "model",
  model: "",
  tokens_before: 0,
  tokens_after: 0,
  reason: "",
  summary: "",
  problem: null,
  retry_at: null,
  replaced: false,
} as const;

export function chapterHappened(view: Draft, record: LogRecord, event: ChapterEvent): void {
  const { version, at } = record;
  const here = { key: `v${version}`, version, at };
  switch (event.kind) {
    case "ChapterOpened":
      view.items.push({
        ...here,
        kind: "chapter",
        chapter: event.chapter,
        rule: event.rule,
        reason: event.reason,
        by: actorWords(event.by),
        actor: event.by,
        kept: event.kept ?? [],
        stopped: event.stopped ?? [],
        note: event.hand_over ?? "",
        noteFrom: event.hand_over_from ?? "",
        undone: false,
      });
      view.resets = [...view.resets, version];
      view.compaction = AT_REST;
      view.context = 0;
      break;
    case "ChapterRejoined": {
      const undone = view.resets.at(-1);
      view.items = view.items.map((item) =>
        item.kind === "chapter" && item.version === undone ? { ...item, undone: true } : item,
      );
      view.resets = view.resets.slice(0, -1);
      view.compaction = AT_REST;
      notice(view, record, event);
      break;
    }
    case "ToolResultsTrimmed":
      view.context = event.tokens_after;
      notice(view, record, event);
      break;
    case "SummaryRequested":
      view.compaction = { ...view.compaction, wanted: true };
      notice(view, record, event);
      break;
    case "SummaryStarted":
      view.compaction = { ...view.compaction, trying: true };
      if (event.purpose === "hand_over") break;
      put(
        view,
        {
          ...here,
          ...NO_SUMMARY,
          state: "running",
          covers_turn: event.covers_turn,
          covers_step: event.covers_step ?? 0,
          attempt: event.attempt,
          model: event.model,
          tokens_before: event.tokens,
          reason: event.reason,
        },
        (last) =>
          last.state === "failed" &&
          last.covers_turn === event.covers_turn &&
          last.covers_step === (event.covers_step ?? 0) &&
          view.items.at(-1) === last,
      );
      break;
    case "SummaryWritten":
      if (event.purpose === "hand_over") {
        view.compaction = AT_REST;
        break;
      }
      view.compaction = { wanted: event.source === "digest" && view.compaction.wanted, trying: false };
      if (event.source === "model") {
        view.items = view.items.map((item) =>
          item.kind === "summary" && item.source === "digest" && inChapter(view, item.version)
            ? { ...item, replaced: true }
            : item,
        );
      }
      put(
        view,
        {
          ...here,
          ...NO_SUMMARY,
          state: "done",
          covers_turn: event.covers_turn,
          covers_step: event.covers_step ?? 0,
          source: event.source,
          model: event.model,
          tokens_before: event.tokens_before,
          tokens_after: event.tokens_after,
          reason: event.reason,
          summary: event.summary,
        },
        (last) => last.state === "running",
      );
      view.context = event.tokens_after || view.context;
      break;
    case "SummaryFailed": {
      if (event.purpose === "hand_over") {
        view.compaction = { wanted: event.retry_at !== null, trying: false };
        notice(view, record, event, "warning");
        break;
      }
      const cut = event.problem.code === INTERRUPTED;
      view.compaction = { wanted: cut && view.compaction.wanted, trying: false };
      put(
        view,
        {
          ...here,
          ...NO_SUMMARY,
          state: "failed",
          covers_turn: event.covers_turn,
          covers_step: event.covers_step ?? 0,
          attempt: event.attempt,
          problem: event.problem,
          retry_at: event.retry_at,
        },
        (last) => last.state === "running",
      );
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
  else
    view.items[index] = {
      ...item,
      key: last.key,
      at: last.at,
      model: item.model || last.model,
      tokens_before: item.tokens_before || last.tokens_before,
    };
}
