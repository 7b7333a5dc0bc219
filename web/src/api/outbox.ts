/**
 * Messages that the gateway has not taken yet. Each has its id from the first moment: however often it is sent, from
 * whatever tab, it is stored once. Each has a place of its own in storage, so that no tab writes over another's.
 */

import { now } from "./clock";
import { connection } from "./connection";
import { call, newId, Refused, Unreachable } from "./http";
import { drop, load, names, save } from "./storage";
import { Store } from "./store";

export interface Waiting {
  readonly id: string;
  readonly session: string;
  readonly text: string;
  readonly mode: "queue" | "steer" | "interrupt";
  readonly at: number;
  readonly problem: string;
}

const PLACE = "outbox.";
const AGAIN_MS = 3_000;

/** In the order in which they were written: ids begin with the time. */
const kept = (): readonly Waiting[] => names(PLACE).flatMap((name) => load<Waiting | null>(name, null) ?? []);

export const outbox = new Store<readonly Waiting[]>(kept());

function put(message: Waiting): void {
  save(PLACE + message.id, message);
  outbox.set(kept());
}

export function post(session: string, text: string, mode: Waiting["mode"]): void {
  put({ id: newId(), session, text, mode, at: now(), problem: "" });
  void flush();
}

export function discard(id: string): void {
  drop(PLACE + id);
  outbox.set(kept());
}

export function again(id: string): void {
  const message = outbox.get().find((one) => one.id === id);
  if (message) put({ ...message, problem: "" });
  void flush();
}

let sending = false;
let timer: ReturnType<typeof setTimeout> | undefined;

export async function flush(): Promise<void> {
  if (sending) return;
  sending = true;
  clearTimeout(timer);
  try {
    for (let next = first(); next; next = first()) {
      try {
        await call("POST /v1/sessions/{id}/messages", {
          path: { id: next.session },
          key: next.id,
          body: { text: next.text, mode: next.mode },
        });
        discard(next.id);
      } catch (error) {
        if (error instanceof Unreachable || (error instanceof Refused && [401, 429, 503, 507].includes(error.status))) {
          timer = setTimeout(() => void flush(), AGAIN_MS);
          return;
        }
        put({ ...next, problem: error instanceof Error ? error.message : "It was not taken." });
      }
    }
  } finally {
    sending = false;
  }
}

const first = (): Waiting | undefined => outbox.get().find((message) => !message.problem);

connection.subscribe(() => {
  if (connection.get().state === "live") void flush();
});

if (typeof window !== "undefined") {
  window.addEventListener("storage", (event) => {
    if (event.key === null || event.key.startsWith(`holdfast.${PLACE}`)) outbox.set(kept()); // of another tab
  });
}
