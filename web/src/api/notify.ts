/** Notifications of the browser: only when this device asked for them, only while nobody looks at any of its tabs. */
import { load, save } from "./storage";

export const canNotify = (): boolean => "Notification" in window && "serviceWorker" in navigator;
export const wantsNotifications = (): boolean =>
  canNotify() && load("notify", false) && Notification.permission === "granted";

export async function setNotifications(on: boolean): Promise<boolean> {
  if (on && (await Notification.requestPermission()) !== "granted") return false;
  save("notify", on);
  return on;
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
