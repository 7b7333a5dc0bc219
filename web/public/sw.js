// Nothing is cached: the log is the truth and the page is small. It shows notifications and opens what they are about.
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
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
