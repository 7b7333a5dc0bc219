/** Times, durations, sizes and counts as the dashboard says them. */
import { now as theirNow } from "./api/clock";
import type { SessionCreated } from "./api/types.gen";

const DAY = 86_400_000;
const pad = (value: number): string => String(value).padStart(2, "0");
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const DAYS = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

/** How long something took: with tenths while they matter. */
export function duration(ms: number): string {
  if (ms < 50) return "< 0.1 s";
  return ms < 10_000 ? `${(ms / 1000).toFixed(1)} s` : elapsed(ms);
}

/** How long something goes on, in its two largest units and whole seconds; the gateway writes the same. */
export function elapsed(ms: number): string {
  const seconds = Math.floor(Math.max(0, ms) / 1000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (seconds < 60) return `${seconds} s`;
  if (minutes < 60) return minutes < 10 ? `${minutes} min ${seconds % 60} s` : `${minutes} min`;
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

/** How long something lasted that took some time: never "0 s". */
export const lasted = (ms: number): string => (ms < 1000 ? "less than 1 s" : elapsed(ms));

export function midnight(now: number): number {
  return new Date(now).setHours(0, 0, 0, 0);
}

export function clock(at: number): string {
  const time = new Date(at);
  return `${pad(time.getHours())}:${pad(time.getMinutes())}`;
}

export function moment(at: number, now: number = theirNow()): string {
  const time = new Date(at);
  if (at >= midnight(now)) return clock(at);
  if (at >= midnight(now) - 6 * DAY) return `${DAYS[time.getDay()] ?? ""} ${clock(at)}`;
  return `${time.getDate()} ${MONTHS[time.getMonth()] ?? ""}`;
}

/** From one moment to another; one of them if nobody can tell them apart. */
export function span(from: number, until: number): string {
  const [first, last] = [moment(from), moment(until)];
  return first === last ? first : `${first} – ${last}`;
}

export function day(at: number, now: number = theirNow()): string {
  const start = midnight(now);
  if (at >= start) return "Today";
  if (at >= start - DAY) return "Yesterday";
  const time = new Date(at);
  if (at >= start - 6 * DAY)
    return ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"][time.getDay()] ?? "";
  return `${time.getDate()} ${MONTHS[time.getMonth()] ?? ""} ${time.getFullYear()}`;
}

export function full(at: number): string {
  return new Date(at).toLocaleString();
}

export function size(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  for (const unit of ["KiB", "MiB", "GiB"]) {
    bytes /= 1024;
    if (bytes < 1024 || unit === "GiB") return `${bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)} ${unit}`;
  }
  return "";
}

export function count(value: number): string {
  if (value >= 999_500) return `${(value / 1_000_000).toFixed(1)}M`;
  return value < 10_000 ? value.toLocaleString("en") : `${Math.round(value / 1000)}k`;
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${value.toLocaleString("en")} ${value === 1 ? one : many}`;
}

export function dollars(cost: number): string {
  return cost > 0 && cost < 0.01 ? "< $0.01" : `$${cost.toFixed(2)}`;
}

/** How people name a card (`HF-118`); by its id where an event of an earlier version does not know its number. */
export const cardLabel = (number: number | undefined, id: string): string => (number ? `HF-${number}` : id);

/** A task by its title; the run of a card by the number of the card too. */
export const taskName = (task: {
  readonly title: string;
  readonly card?: string;
  readonly card_number?: number;
}): string => (task.card ? `${cardLabel(task.card_number, task.card)} ${task.title}` : task.title);

/** What needs somebody, by its title; a card by its number too. */
export const entryTitle = ({ number = 0, title }: { readonly number?: number; readonly title: string }): string =>
  `${number > 0 ? `${cardLabel(number, "")} ` : ""}${title || "New session"}`;

/** Where there is room for one plain line. */
export const withoutMarkdown = (text: string): string =>
  text
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/(\*\*|__|`+|~~)/g, "")
    .replace(/(^|\W)([*_])(?=\S)(.+?)\2(?=\W|$)/g, "$1$3")
    .replace(/^\s{0,3}(#{1,6}|>|[-*+])\s+/gm, "");

/** What agents and people wrote is Markdown; what an approval or a failure quotes is shown to the letter. */
const WRITTEN: ReadonlySet<string> = new Set(["question", "blocked_card", "card_in_review"]);

/** What somebody is needed for, in one line. */
export const entryWords = ({ kind, what }: { readonly kind: string; readonly what: string }): string =>
  WRITTEN.has(kind) ? withoutMarkdown(what) : what;

/** Its page. */
export const cardPath = (card: { readonly board: string; readonly number: number; readonly id: string }): string =>
  `/board/${card.board}/${cardLabel(card.number, card.id)}`;

export type Actor = SessionCreated["by"];

/** Who did it, as everybody reads it. */
export function actorWords(by: Actor): string {
  switch (by.type) {
    case "person":
      return by.client === "telegram" ? `${by.device} on Telegram` : by.client;
    case "agent":
      return `the agent of session ${by.session}`;
    case "run":
      return `run ${by.run} of card ${cardLabel(by.card_number, by.card)}`;
    case "task":
      return `task ${by.task}`;
    case "service":
      return [`the ${by.name}${by.rule ? ` rule ${by.rule}` : ""}`, by.asked_by && `applied by ${by.asked_by.client}`]
        .filter(Boolean)
        .join(", ");
  }
}

/** Who did it: ourselves, when it came through one of our clients. */
export function byWhom(by: Actor | string): string {
  const words = typeof by === "string" ? by : actorWords(by);
  return ["web", "cli", "api", ""].includes(words) || words.startsWith("device ") ? "you" : words;
}

/** A reason that the gateway wrote, in the words of whoever reads it. */
export const asYou = (reason: string): string =>
  reason.replace(/\bby (?:web|cli|api)\b/, "by you").replace(/\b(?:web|cli|api)(?= asked for it\b)/, "you");

/** A moment to come: today by the clock, else with its day. */
export function coming(at: number, now: number = theirNow()): string {
  if (at < midnight(now) + DAY) return clock(at);
  const time = new Date(at);
  return `${time.getDate()} ${MONTHS[time.getMonth()] ?? ""} ${clock(at)}`;
}

/** How old something is, by the minute: a board is looked at for hours. */
export const age = (ms: number): string => (ms < 60_000 ? "< 1 min" : elapsed(ms).replace(/ min \d+ s$/, " min"));

/** "stopped by web" as the person reads it who did that. */
export const stoppedBy = (reason: string): string =>
  reason.replace(/^stopped by (.+)$/, (_, who: string) => `stopped by ${byWhom(who)}`);
