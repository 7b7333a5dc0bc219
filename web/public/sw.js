// The page without the gateway: its files are kept, so that a reload while the gateway is down shows the app and what
// was known. Data is never kept here. It also shows notifications, once for all tabs and only while nobody looks at
// one, and opens what they are about.
const FILES = "holdfast-files";
const LIST = "/files.txt"; // the build, then every file of it

async function refresh() {
  const answer = await fetch(LIST, { cache: "no-store" });
  if (!answer.ok) return;
  const text = await answer.clone().text();
  const cache = await caches.open(FILES);
  const known = await cache.match(LIST);
  if (known && (await known.text()) === text) return;
  const files = text.trim().split("\n").slice(1);
  await cache.addAll(["/", ...files]);
  await cache.put(LIST, answer);
  const wanted = new Set(["/", LIST, ...files]);
  for (const request of await cache.keys()) {
    if (!wanted.has(new URL(request.url).pathname)) await cache.delete(request);
  }
}

// Asked for anew, as a request of this site: the gateway refuses what a link on another site asks for through us.
async function page({ url }) {
  try {
    const answer = await fetch(url, { headers: { accept: "text/html" } });
    if (answer.status < 500) return answer;
    return (await caches.match("/", { cacheName: FILES })) ?? answer;
  } catch (error) {
    const kept = await caches.match("/", { cacheName: FILES });
    if (kept) return kept;
    throw error;
  }
}

async function file(request) {
  return (await caches.match(request, { cacheName: FILES })) ?? fetch(request);
}

self.addEventListener("install", (event) => {
  self.skipWaiting();
  event.waitUntil(refresh());
});
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  if (request.mode === "navigate") {
    event.respondWith(page(request));
    event.waitUntil(refresh().catch(() => undefined));
  } else if (/^\/assets\/|^\/[\w.-]+\.(js|svg|webmanifest)$/.test(pathname) && pathname !== "/sw.js") {
    event.respondWith(/^\/assets\//.test(pathname) ? file(request) : fetch(request).catch(() => file(request)));
  }
});

const ALL_HEARD_MS = 400;
const heard = new Map(); // the event that it is about: whether somebody looks at one of the tabs

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
