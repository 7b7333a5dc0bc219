// Nothing is cached: the log is the truth and the page is small. It shows notifications, once for all tabs and only
// while nobody looks at one, and opens what they are about.
const ALL_HEARD_MS = 400;
const heard = new Map(); // the event that it is about: whether somebody looks at one of the tabs

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("message", (event) => {
  const { seq, looks, title, body, to } = event.data || {};
  if (!title) return;
  const known = heard.has(seq);
  heard.set(seq, looks || heard.get(seq) === true);
  if (known) return;
  if (heard.size > 500) heard.delete(heard.keys().next().value);
  event.waitUntil((async () => {
    await new Promise((resolve) => setTimeout(resolve, ALL_HEARD_MS));
    if (heard.get(seq)) return;
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
