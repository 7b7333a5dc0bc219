// Nothing is cached: the log is the truth and the page is small. It shows notifications, once for all tabs and only
// while nobody looks at one, and opens what they are about.
const shown = new Set();

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("message", (event) => {
  const { seq, title, body, to } = event.data || {};
  if (!title || shown.has(seq)) return;
  shown.add(seq);
  if (shown.size > 500) shown.delete(shown.values().next().value);
  event.waitUntil((async () => {
    const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
    if (pages.some((page) => page.visibilityState === "visible")) return;
    await self.registration.showNotification(title, { body, tag: to, renotify: true, data: { to, seq }, icon: "/logo.svg" });
  })());
});
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const to = (event.notification.data && event.notification.data.to) || "/";
  event.waitUntil((async () => {
    const pages = await self.clients.matchAll({ type: "window" });
    if (pages.length === 0) return self.clients.openWindow(to);
    await pages[0].focus();
    return pages[0].postMessage({ open: to });
  })());
});
