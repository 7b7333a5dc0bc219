-- Where the browser of a device takes pushes, and what it is told (notify/push.py).
CREATE TABLE push_subscriptions (
    device TEXT PRIMARY KEY REFERENCES devices (id) ON DELETE CASCADE,
    endpoint TEXT NOT NULL,
    p256dh TEXT NOT NULL,
    auth TEXT NOT NULL,
    kinds TEXT NOT NULL,
    when_absent INTEGER NOT NULL CHECK (when_absent IN (0, 1)),
    details INTEGER NOT NULL CHECK (details IN (0, 1)),
    changed_at INTEGER NOT NULL,
    ended TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE UNIQUE INDEX push_endpoints ON push_subscriptions (endpoint) WHERE ended = '';
