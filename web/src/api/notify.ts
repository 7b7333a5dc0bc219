/**
 * Notifications of the browser, when this device asked for them. Where it takes pushes, the gateway tells it; elsewhere
 * its pages do, only while nobody looks at any of them.
 */
import { load, save } from "./storage";

export const canNotify = (): boolean => "Notification" in window && "serviceWorker" in navigator;
export const takesPushes = (): boolean => load("push", "") !== "";
export const wantsNotifications = (): boolean =>
  canNotify() && load("notify", false) && !takesPushes() && Notification.permission === "granted";

export async function setNotifications(on: boolean): Promise<boolean> {
  if (on && (await Notification.requestPermission()) !== "granted") return false;
  save("notify", on);
  return on;
}

/** Make a subscription again that was lost. */
export function keepPushes(): void {
  if (!canNotify() || !takesPushes()) return;
  void import("./push").then(({ renew }) => renew()).catch(() => undefined); // the settings say what is wrong
}

/** The badge of the installed app; and what is settled need not be shown to somebody who is here. */
export function showWaiting(count: number): void {
  void navigator.setAppBadge?.(count).catch(() => undefined);
  if (canNotify() && document.visibilityState === "visible")
    void navigator.serviceWorker.getRegistration().then(async (worker) => {
      for (const shown of (await worker?.getNotifications()) ?? []) if (shown.data?.settled) shown.close();
    });
}

/**
 * Every tab hears of it and says whether somebody looks at it; the worker, which all of them share, shows it once or
 * not at all. `seq` is the event that it rests on.
 */
export function notify(seq: number, title: string, body: string, to: string): void {
  if (!wantsNotifications()) return;
  const looks = document.visibilityState === "visible";
  void navigator.serviceWorker.ready.then((worker) =>
    worker.active?.postMessage({ seq, looks, title, body: body.slice(0, 300), to }),
  );
}
