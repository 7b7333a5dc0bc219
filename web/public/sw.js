// The page without the gateway: its files are kept, so that a reload while the gateway is down shows the app and what
// was known. Data is never kept here. It also shows notifications, once for all tabs and only while nobody looks at
// one; takes pushes, also while no page is open; opens what they are about, and answers what their buttons say.
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
  } else if (/^\/assets\/|^\/[\w.-]+\.(js|svg|png|webmanifest)$/.test(pathname) && pathname !== "/sw.js") {
    event.respondWith(/^\/assets\//.test(pathname) ? file(request) : fetch(request).catch(() => file(request)));
  }
});

// One after the other: Chromium forgets a notification that is about to be shown when it is asked what it shows.
let before = Promise.resolve();
function inTurn(work) {
  before = before.then(work, work);
  return before;
}

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
    const shown = { body, tag: to, renotify: true, data: { to, seq }, icon: "/icon-192.png" };
    await inTurn(() => self.registration.showNotification(title, shown));
  })());
});

// --- pushes: what a notification shows, also while no page is open ---

const TOLD = "holdfast-told"; // the ids of the last pushes: after a crash the gateway may send one again
const TOLD_KEPT = 100;
// What a browser shows for a push that shows nothing, Safari takes as a reason to end the subscription.
const MUST_SHOW = /AppleWebKit/.test(navigator.userAgent) && !/Chrom/.test(navigator.userAgent);
const WORDS = { allow: "Allow once", deny: "Refuse" };

async function isNew(id) {
  const cache = await caches.open(TOLD);
  if (await cache.match(`/told/${id}`)) return false;
  await cache.put(`/told/${id}`, new Response());
  const known = await cache.keys();
  for (const old of known.slice(0, -TOLD_KEPT)) await cache.delete(old);
  return true;
}

function read(data) {
  try {
    return data.json();
  } catch {
    return { title: "Holdfast", text: "something happened", link: "/" };
  }
}

// Buttons only if all choices have one: half of them would mislead.
function actionsOf({ kind, choices = [] }) {
  const most = self.Notification?.maxActions ?? 0;
  if (choices.length > most || (kind !== "approval" && kind !== "question")) return [];
  return choices.map((choice, number) => ({ action: String(number), title: WORDS[choice] ?? choice.slice(0, 40) }));
}

function options({ matter, text, link = "/", ...more }) {
  return { body: text, tag: matter, icon: "/icon-192.png", badge: "/badge-96.png", data: { to: link, matter, ...more } };
}

async function showNothing(told) {
  if (!MUST_SHOW) return;
  await self.registration.showNotification(told.title, { ...options(told), silent: true });
  for (const shown of await self.registration.getNotifications({ tag: told.matter })) shown.close();
}

// The page that somebody looks at says it itself.
async function isSeen() {
  const pages = await self.clients.matchAll({ type: "window" });
  return pages.some((page) => page.visibilityState === "visible" && page.focused);
}

async function settle(told) {
  const shown = await self.registration.getNotifications({ tag: told.matter });
  if (shown.length === 0) return showNothing(told);
  return self.registration.showNotification(told.title, { ...options({ ...told, settled: true }), silent: true });
}

async function tell(told) {
  if (told.kind === "settled") return settle(told);
  const again = told.id && !(await isNew(told.id));
  if (again || (told.kind !== "test" && (await isSeen()))) return showNothing(told);
  const actions = actionsOf(told);
  const shown = { ...options(told), renotify: Boolean(told.matter), timestamp: told.at, actions };
  return self.registration.showNotification(told.title, shown);
}

async function setBadge() {
  if (!navigator.setAppBadge) return;
  const answer = await fetch("/v1/inbox");
  if (answer.ok) await navigator.setAppBadge((await answer.json()).total);
}

self.addEventListener("push", (event) => {
  const told = read(event.data);
  event.waitUntil(inTurn(() => tell(told)).then(() => setBadge().catch(() => undefined)));
});

// Answered once wherever: whoever comes second is told what was answered.
async function answer({ title, tag, data }, number) {
  const tryThere = "Open Holdfast and answer there.";
  let problem = "";
  try {
    const answered = await fetch("/v1/answers", {
      method: "POST",
      headers: { "content-type": "application/json", "idempotency-key": crypto.randomUUID() },
      body: JSON.stringify({ wait: data.wait, answer: data.choices[number] }),
    });
    if (answered.status === 401) problem = `This device is signed out, so nothing was answered. ${tryThere}`;
    else if (!answered.ok) problem = (await answered.json()).error.message;
  } catch {
    problem = `Holdfast cannot be reached, so nothing was answered. ${tryThere}`;
  }
  await setBadge().catch(() => undefined);
  if (!problem) return;
  const { wait: _, choices: __, ...kept } = data;
  const shown = { ...options({ matter: tag, text: problem }), data: kept };
  await inTurn(() => self.registration.showNotification(title, shown));
}

async function open(to) {
  const pages = await self.clients.matchAll({ type: "window" });
  const there = pages.find((page) => new URL(page.url).pathname === to);
  const page = there ?? pages.find(({ visibilityState }) => visibilityState === "visible") ?? pages[0];
  if (!page) return self.clients.openWindow(to);
  await page.focus().catch(() => undefined);
  return page.postMessage({ open: to });
}

self.addEventListener("notificationclick", (event) => {
  const { notification, action } = event;
  notification.close();
  const to = notification.data?.to ?? "/";
  event.waitUntil(action ? answer(notification, Number(action)) : open(to.startsWith("/") ? to : "/"));
});

// The browser has ended the subscription. What this device is told stays as it is.
async function subscribeAgain() {
  const { key } = await (await fetch("/v1/push")).json();
  const given = { userVisibleOnly: true, applicationServerKey: key };
  const { endpoint, keys } = (await self.registration.pushManager.subscribe(given)).toJSON();
  const headers = { "content-type": "application/json" };
  await fetch("/v1/push", { method: "POST", headers, body: JSON.stringify({ endpoint, keys }) });
}

self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(subscribeAgain()));
