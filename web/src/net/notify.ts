/** Notifications of the browser: only when this device asked for them, only while nobody looks. */
import { load, save } from "./keep";

export const canNotify = (): boolean => "Notification" in window && "serviceWorker" in navigator;
export const wantsNotifications = (): boolean => canNotify() && load("notify", false) && Notification.permission === "granted";

export async function setNotifications(on: boolean): Promise<boolean> {
  if (on && (await Notification.requestPermission()) !== "granted") return false;
  save("notify", on);
  return on;
}

export function notify(title: string, body: string, to: string): void {
  if (document.visibilityState === "visible" || !wantsNotifications()) return;
  void navigator.serviceWorker.ready.then((worker) =>
    worker.showNotification(title, { body: body.slice(0, 300), tag: to, data: { to }, icon: "/logo.svg" }));
}
