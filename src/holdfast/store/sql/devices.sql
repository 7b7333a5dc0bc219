-- Devices: browsers that were let in, their one-time codes, how far each has read.

-- name: add_code
-- A new way in, known by its hash only.
INSERT INTO codes (hash, expires_at, device) VALUES (:hash, :expires_at, :device);

-- name: list_codes
-- Those that can still be used.
SELECT hash, expires_at FROM codes WHERE expires_at > :at;

-- name: delete_codes_of
-- The device that created them was revoked.
DELETE FROM codes WHERE device = :device;

-- name: delete_old_codes
-- Those that can no longer be used.
DELETE FROM codes WHERE expires_at <= :at;

-- name: use_code
-- Once: a row when it was there, is not too old and its device (if a device created it) is still signed in.
DELETE FROM codes WHERE hash = :hash AND expires_at > :at
AND (device = '' OR EXISTS (SELECT 1 FROM devices d WHERE d.id = codes.device)) RETURNING expires_at;

-- name: add_device
-- Somebody came in, or came in again: then with a new cookie.
INSERT INTO devices (id, hash, name, created_at, seen_at) VALUES (:id, :hash, :name, :at, :at)
ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, name = excluded.name, seen_at = excluded.seen_at;

-- name: delete_device
-- Its cookie counts no more; its cursors go with it.
DELETE FROM devices WHERE id = :id;

-- name: touch_device
-- It was here.
UPDATE devices SET seen_at = CASE WHEN seen_at < :at THEN :at ELSE seen_at END WHERE id = :id;

-- name: rename_device
-- Somebody gave it a name.
UPDATE devices SET name = :name WHERE id = :id;

-- name: list_devices
-- All of them, oldest first.
SELECT id, hash, name, created_at, seen_at FROM devices ORDER BY created_at, id;

-- name: save_cursor
-- How far a device has read in a session, and when it looked there last; both only grow.
INSERT INTO cursors (device, session, version, seen_at) VALUES (:device, :session, :version, :at)
ON CONFLICT (device, session) DO UPDATE
    SET version = CASE WHEN cursors.version < excluded.version THEN excluded.version ELSE cursors.version END,
        seen_at = CASE WHEN cursors.seen_at < excluded.seen_at THEN excluded.seen_at ELSE cursors.seen_at END
RETURNING version;

-- name: save_last_session
-- Where the device looked last.
UPDATE devices SET last_session = :session, seen_at = CASE WHEN seen_at < :at THEN :at ELSE seen_at END
WHERE id = :device RETURNING id;

-- name: last_session
-- Where it looked last; empty when that was deleted.
SELECT last_session FROM devices WHERE id = :device;

-- name: save_reviewed
-- Somebody looked through what happened; that moment only grows.
UPDATE devices SET reviewed_at = CASE WHEN reviewed_at < :at THEN :at ELSE reviewed_at END
WHERE id = :device RETURNING reviewed_at;

-- name: reviewed_at
-- When somebody last looked through what happened; before the first time, when the device came in.
SELECT CASE WHEN reviewed_at < created_at THEN created_at ELSE reviewed_at END AS reviewed_at
FROM devices WHERE id = :device;

-- name: read_positions
-- How far it has read, everywhere.
SELECT session, version FROM cursors WHERE device = :device;

-- name: count_unread
-- The finished texts of the agent behind a device's cursors, for a page of sessions.
SELECT s.id AS session, (
    SELECT COUNT(*) FROM answers t
    WHERE t.session = s.id AND t.version > COALESCE(c.version, 0) AND (c.version IS NOT NULL OR t.at > d.created_at)
) AS unread
FROM sessions s JOIN devices d ON d.id = :device LEFT JOIN cursors c ON c.device = d.id AND c.session = s.id
WHERE s.id IN :sessions;

-- name: count_all_unread
-- The finished texts of the agent behind a device's cursors, in all sessions of the list, by the kind of session.
SELECT CASE WHEN s.id IN (SELECT session FROM runs) THEN 'worker'
        WHEN s.task <> '' THEN 'background' ELSE 'mine' END AS kind,
    COUNT(DISTINCT s.id) AS sessions, COUNT(*) AS messages
FROM devices d JOIN sessions s ON s.archived = FALSE LEFT JOIN cursors c ON c.device = d.id AND c.session = s.id
JOIN answers t ON t.session = s.id AND t.version > COALESCE(c.version, 0)
    AND (c.version IS NOT NULL OR t.at > d.created_at)
WHERE d.id = :device AND s.version > COALESCE(c.version, 0) AND (c.version IS NOT NULL OR s.updated_at > d.created_at)
GROUP BY 1;

-- name: looked_at_session
-- When a device last looked at a session.
SELECT seen_at FROM cursors WHERE device = :device AND session = :session;

-- name: delete_cursors
-- Gone with their session.
DELETE FROM cursors WHERE session = :session;

-- name: delete_last_session
-- It can no longer be opened.
UPDATE devices SET last_session = '' WHERE last_session = :session;

-- name: since_texts
-- What the agent said after a version, and where it began.
SELECT COUNT(*) AS messages, MIN(version) AS first FROM answers
WHERE session = :session AND version > :after AND version <= :upto;

-- name: release_endpoint
-- The same browser is another device now, one that is signed in.
DELETE FROM push_subscriptions WHERE endpoint = :endpoint AND device <> :device
AND EXISTS (SELECT 1 FROM devices WHERE id = :device);

-- name: save_push
-- The browser of a device takes pushes there, if the device is still signed in.
INSERT INTO push_subscriptions (device, endpoint, p256dh, auth, kinds, when_absent, details, changed_at, ended)
SELECT id, :endpoint, :p256dh, :auth, :kinds, :when_absent, :details, :changed_at, '' FROM devices WHERE id = :device
ON CONFLICT (device) DO UPDATE SET endpoint = excluded.endpoint, p256dh = excluded.p256dh, auth = excluded.auth,
    kinds = excluded.kinds, when_absent = excluded.when_absent, details = excluded.details,
    changed_at = excluded.changed_at, ended = ''
RETURNING device;

-- name: end_push
-- Its push service takes nothing more there; the rest stays for when it subscribes again.
UPDATE push_subscriptions SET ended = :ended, changed_at = :changed_at, endpoint = '', p256dh = '', auth = ''
WHERE device = :device AND endpoint = :endpoint;

-- name: delete_push
-- Somebody turned it off.
DELETE FROM push_subscriptions WHERE device = :device;

-- name: list_pushes
-- All of them.
SELECT * FROM push_subscriptions ORDER BY device;
