/** The output of a task as it is read: a part that grows where somebody scrolls, and at its end while it runs. */
import { useCallback, useEffect, useRef, useState } from "react";
import { append, type Loaded, nothingLoaded, prepend, rowAt } from "./outputRows";
import { type OutputPiece, readOutput } from "./queries";

const PIECE = 262_144;
/** So much is loaded from the beginning; of more, the end. */
const WHOLE = 4 * 1024 * 1024;
const TAIL = 1024 * 1024;
const WAIT_SECONDS = 20;
const RETRY_MS = 2000;

export interface Output {
  readonly loaded: Loaded;
  /** How much was written; null before the gateway has said it. */
  readonly size: number | null;
  readonly running: boolean;
  /** Why nothing more is shown, while that is so. */
  readonly problem: string;
  /** Load what stands before or after. */
  readonly grow: (where: "before" | "after") => void;
  /** Show another part: around this place, from the beginning, or the end. */
  readonly show: (place: number | "start" | "end") => Promise<void>;
}

interface State {
  readonly loaded: Loaded;
  readonly size: number | null;
  readonly running: boolean;
  readonly problem: string;
}

const UNREAD: State = { loaded: nothingLoaded(0), size: null, running: true, problem: "" };

export function useOutput(task: string): Output {
  const [state, setState] = useState(UNREAD);
  const reader = useRef<OutputReader | null>(null);
  useEffect(() => {
    const opened = new OutputReader(task, setState);
    reader.current = opened;
    void opened.show("whole");
    return () => opened.close();
  }, [task]);
  const grow = useCallback((where: "before" | "after") => reader.current?.grow(where), []);
  const show = useCallback(async (place: number | "start" | "end") => reader.current?.show(place), []);
  return { ...state, grow, show };
}

/** Reads one output. One request at a time; another part that is wanted ends the one before. */
class OutputReader {
  private state = UNREAD;
  private request = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private busy = false;

  constructor(
    private readonly task: string,
    private readonly tell: (state: State) => void,
  ) {}

  close(): void {
    clearTimeout(this.timer);
    this.request.abort();
  }

  async show(place: number | "start" | "end" | "whole"): Promise<void> {
    const { loaded, size } = this.state;
    if (place === "start" && size !== null && loaded.from === 0) return;
    if (place === "end" && size !== null && loaded.to >= size) return;
    if (typeof place === "number" && rowAt(loaded.rows, place) >= 0) return;
    this.close();
    this.request = new AbortController();
    const { signal } = this.request;
    await this.trying(signal, async () => {
      const written = await this.sizeNow(signal);
      const from = this.beginning(place, written);
      this.set({ loaded: nothingLoaded(from), size: written });
      const until = typeof place === "number" ? place + PIECE : place === "start" ? TAIL : written;
      await this.readOn(signal, Math.min(written, until));
      if (from > 0) this.skipFirstLine();
    });
    if (!signal.aborted) void this.follow(signal);
  }

  private async sizeNow(signal: AbortSignal): Promise<number> {
    const page = await readOutput(this.task, { offset: 0, limit: 64 }, signal);
    this.set({ running: page.state === "running" });
    return page.size;
  }

  private beginning(place: number | "start" | "end" | "whole", size: number): number {
    if (place === "start") return 0;
    if (place === "whole") return size > WHOLE ? size - TAIL : 0;
    return Math.max(0, place === "end" ? size - TAIL : place - PIECE / 2);
  }

  /** It was begun somewhere: the rest of that line is read with the lines before it. */
  private skipFirstLine(): void {
    const { loaded } = this.state;
    const [first, second] = loaded.rows;
    if (first?.kind === "line" && second && !(second.kind === "line" && second.continued))
      this.set({ loaded: { ...loaded, rows: loaded.rows.slice(1), from: second.offset } });
  }

  grow(where: "before" | "after"): void {
    const { loaded, size } = this.state;
    if (this.busy || size === null || (where === "before" ? loaded.from === 0 : loaded.to >= size)) return;
    const { signal } = this.request;
    void this.trying(signal, async () => {
      if (where === "after") return this.readOn(signal, loaded.to + PIECE);
      await this.readBefore(signal);
    });
  }

  private async readBefore(signal: AbortSignal): Promise<void> {
    const { from } = this.state.loaded;
    const offset = Math.max(0, from - PIECE);
    const page = await readOutput(this.task, { offset, limit: Math.max(64, from - offset) }, signal);
    const bytes = page.bytes.subarray(0, Math.max(0, from - page.start));
    const gap = page.gap
      ? { start: await this.gapStart(page.gap.start, signal), end: Math.min(page.gap.end, from) }
      : null;
    this.set({ loaded: prepend(this.state.loaded, { offset: page.start, bytes, gap }) });
  }

  /** A read that begins inside of a gap does not say where the gap begins: a read before it does. */
  private async gapStart(inside: number, signal: AbortSignal): Promise<number> {
    let [low, high] = [0, inside];
    while (low < high) {
      const middle = (low + high) >> 1;
      const page = await readOutput(this.task, { offset: middle, limit: 64 }, signal);
      if (page.gap) high = middle;
      else low = page.start + page.bytes.length;
    }
    return low;
  }

  private async readOn(signal: AbortSignal, until: number): Promise<void> {
    while (!signal.aborted && this.state.loaded.to < until) {
      const { to } = this.state.loaded;
      const page = await readOutput(this.task, { offset: to, limit: PIECE }, signal);
      if (page.gap && to > 0 && this.state.loaded.rows.length === 0) {
        const start = await this.gapStart(page.gap.start, signal);
        this.set({ loaded: nothingLoaded(start) });
        this.add({ ...page, gap: { start, end: page.gap.end } });
      } else this.add(page);
      if (page.next <= to) return;
    }
  }

  /** Wait for what comes, as long as the end is loaded. */
  private async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const { loaded, size, running } = this.state;
      if (size === null || (!running && loaded.to >= size)) return;
      if (loaded.to < size) {
        await new Promise((done) => setTimeout(done, RETRY_MS)); // somebody reads elsewhere
        if (!signal.aborted && running)
          await this.trying(signal, async () => this.set({ size: await this.sizeNow(signal) }));
        if (!this.state.running) return;
        continue;
      }
      await this.trying(
        signal,
        async () => {
          this.add(await readOutput(this.task, { offset: loaded.to, limit: PIECE, wait: WAIT_SECONDS }, signal));
        },
        false,
      );
    }
  }

  private add(page: OutputPiece): void {
    const loaded = append(this.state.loaded, { offset: page.start, bytes: page.bytes, gap: page.gap });
    this.set({ loaded, size: page.size, running: page.state === "running", problem: "" });
  }

  /** Do it, and again after a while if the gateway does not answer; what is shown stays. */
  private async trying(signal: AbortSignal, work: () => Promise<unknown>, exclusive = true): Promise<void> {
    for (;;) {
      try {
        if (exclusive) this.busy = true;
        await work();
        if (this.state.problem) this.set({ problem: "" });
        return;
      } catch (error) {
        if (signal.aborted) return;
        this.set({ problem: error instanceof Error ? error.message : "unknown" });
      } finally {
        if (exclusive) this.busy = false;
      }
      await new Promise((done) => {
        this.timer = setTimeout(done, RETRY_MS);
      });
      if (signal.aborted) return;
    }
  }

  private set(change: Partial<State>): void {
    this.state = { ...this.state, ...change };
    this.tell(this.state);
  }
}
