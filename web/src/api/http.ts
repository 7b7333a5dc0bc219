/** Talking to the gateway: typed by its contract, with ids that make a retry harmless. */
import { visible } from "../ui/blocks";
import type { ApiError, Routes } from "./types.gen";

export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

/** The gateway did not answer at all. */
export class Unreachable extends Error {}

export interface Options {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean>>;
  readonly body?: unknown;
  readonly key?: string;
  readonly signal?: AbortSignal;
  /** It is sent even if the page is closed meanwhile. */
  readonly keepalive?: boolean;
}

let onSignedOut: () => void = () => undefined;
export function whenSignedOut(tell: () => void): void {
  onSignedOut = tell;
}

export const signedOut = (): void => onSignedOut();

export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(10));
  const random = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return Date.now().toString(16).padStart(11, "0") + random;
}

export function call<R extends keyof Routes>(
  route: R,
  options: Options & (Routes[R]["takes"] extends undefined ? object : { readonly body?: Routes[R]["takes"] }) = {},
): Promise<Routes[R]["gives"]> {
  return request<Routes[R]["gives"]>(route, options);
}

export async function request<T>(route: string, options: Options = {}): Promise<T> {
  const answer = await send(route, options);
  // For eyes: titles, previews, words.
  return (answer.status === 204 ? undefined : JSON.parse(visible(await answer.text()))) as T;
}

/** An answer that is not JSON. */
export const fetchBytes = (route: keyof Routes, options: Options): Promise<Response> => send(route, options);

async function send(route: string, options: Options): Promise<Response> {
  const [method = "GET", pattern = "/"] = route.split(" ");
  const path = pattern.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(options.path?.[name] ?? ""));
  const query = new URLSearchParams(Object.entries(options.query ?? {}).map(([name, value]) => [name, String(value)]));
  const headers: Record<string, string> = { accept: "application/json" };
  const init: RequestInit = { method, headers, credentials: "same-origin" };
  if (method !== "GET") {
    headers["content-type"] = "application/json";
    headers["idempotency-key"] = options.key ?? newId();
    init.body = JSON.stringify(options.body ?? {});
  }
  if (options.keepalive) init.keepalive = true;
  if (options.signal) init.signal = options.signal;
  let answer: Response;
  try {
    answer = await fetch(`${path}${query.size ? `?${query}` : ""}`, init);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable("The gateway does not answer.");
  }
  if (answer.status === 401) onSignedOut();
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

async function refusal(answer: Response): Promise<Error> {
  try {
    const { error } = (await answer.json()) as ApiError;
    return new Refused(answer.status, error.code, error.message, error.hint ?? "");
  } catch {
    if (answer.status >= 502 && answer.status <= 504) return new Unreachable("The gateway does not answer.");
    return new Refused(answer.status, "unknown", `The gateway answered ${answer.status}.`, "");
  }
}
