/** Web Push: this browser is told also while no page of ours is open. */
import { call } from "./http";
import { load, save } from "./storage";
import type { PushState, PushSubscribe } from "./types.gen";

/** What this device wants to be told; what is left out stays as it is. */
export type PushRules = Pick<PushSubscribe, "on" | "only_when_nobody_looks" | "details">;

/** Where this browser takes pushes, as the gateway was told; empty while it takes none. */
const KEPT = "push";

/** As the gateway writes its key. */
function toBase64(bytes: ArrayBuffer | null): string {
  const text = String.fromCharCode(...new Uint8Array(bytes ?? new ArrayBuffer(0)));
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Subscribe, or subscribe anew if the gateway has another key or the push service has ended the subscription. */
export async function subscribe(rules: PushRules = {}): Promise<PushState> {
  const { key, subscription: known } = await call("GET /v1/push");
  const { pushManager } = await navigator.serviceWorker.ready;
  let found = await pushManager.getSubscription();
  if (found && (known?.ended || toBase64(found.options.applicationServerKey) !== key)) {
    await found.unsubscribe();
    found = null;
  }
  found ??= await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
  const { endpoint = "", keys = {} } = found.toJSON();
  const body = { endpoint, keys: { p256dh: keys.p256dh ?? "", auth: keys.auth ?? "" }, ...rules };
  const state = await call("POST /v1/push", { body });
  save(KEPT, endpoint);
  return state;
}

export async function unsubscribe(): Promise<PushState> {
  save(KEPT, "");
  const state = await call("DELETE /v1/push");
  const { pushManager } = await navigator.serviceWorker.ready;
  await (await pushManager.getSubscription())?.unsubscribe();
  return state;
}

/** What the browser, its push service or the gateway has lost since is made again. */
export async function renew(): Promise<void> {
  if (Notification.permission !== "granted") return;
  const { key, subscription } = await call("GET /v1/push");
  const found = await (await navigator.serviceWorker.ready).pushManager.getSubscription();
  const same = found?.endpoint === load(KEPT, "") && toBase64(found.options.applicationServerKey) === key;
  if (!same || !subscription || subscription.ended) await subscribe();
}
