/**
 * Messages that the gateway has not taken yet. Each has its id from the first moment: however often it is sent, from
 * whatever tab, it is stored once.
 */
import { Cell } from "./cell";
import { Refused, Unreachable, call, newId } from "./http";
import { line } from "./link";
import { load, save } from "./keep";

export interface Waiting {
  readonly id: string;
  readonly session: string;
  readonly text: string;
  readonly mode: "queue" | "steer" | "interrupt";
  readonly at: number;
  readonly problem: string;
}

export const outbox = new Cell<readonly Waiting[]>(load<readonly Waiting[]>("outbox", []));

function change(next: readonly Waiting[]): void {
  outbox.set(next);
  save("outbox", next);
}

export function post(session: string, text: string, mode: Waiting["mode"]): void {
  change([...outbox.get(), { id: newId(), session, text, mode, at: Date.now(), problem: "" }]);
  void flush();
}

export function discard(id: string): void {
  change(outbox.get().filter((message) => message.id !== id));
}

export function again(id: string): void {
  change(outbox.get().map((message) => (message.id === id ? { ...message, problem: "" } : message)));
  void flush();
}

let sending = false;

export async function flush(): Promise<void> {
  if (sending) return;
  sending = true;
  try {
    for (;;) {
      const next = outbox.get().find((message) => !message.problem);
      if (!next) return;
      try {
        await call("POST /v1/sessions/{id}/messages", {
          path: { id: next.session }, key: next.id, body: { text: next.text, mode: next.mode },
        });
        discard(next.id);
      } catch (error) {
        const passing = error instanceof Unreachable || (error instanceof Refused && [401, 503, 507].includes(error.status));
        if (passing || !(error instanceof Error)) {
          setTimeout(() => void flush(), 3_000);
          return;
        }
        change(outbox.get().map((message) => (message.id === next.id ? { ...message, problem: error.message } : message)));
      }
    }
  } finally {
    sending = false;
  }
}

line.watch(() => {
  if (line.get().state === "live") void flush();
});

if (typeof window !== "undefined") {
  window.addEventListener("storage", (event) => {
    if (event.key === "holdfast.outbox") outbox.set(load<readonly Waiting[]>("outbox", [])); // another tab sent or wrote
  });
}
