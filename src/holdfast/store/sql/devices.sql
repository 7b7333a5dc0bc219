-- Devices: browsers that were let in, their one-time codes, how far each has read.

-- name: mint_code
-- A new way in, known by its hash only.
INSERT INTO codes (hash, expires_at, device) VALUES (:hash, :expires_at, :device);

-- name: list_codes
-- Those that can still be used.
SELECT hash, expires_at FROM codes WHERE expires_at > :at;

-- name: drop_codes_of
-- The device that created them was revoked.
DELETE FROM codes WHERE device = :device;

-- name: drop_old_codes
-- Nobody can use them any more.
DELETE FROM codes WHERE expires_at <= :at;

-- name: use_code
-- Once: a row when it was there, is not too old and its device (if a device created it) is still signed in.
DELETE FROM codes WHERE hash = :hash AND expires_at > :at
AND (device = '' OR EXISTS (SELECT 1 FROM devices d WHERE d.id = codes.device)) RETURNING expires_at;

-- name: add_device
-- Somebody came in, or came in again: then with a new cookie.
INSERT INTO devices (id, hash, name, created_at, seen_at) VALUES (:id, :hash, :name, :at, :at)
ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, name = excluded.name, seen_at = excluded.seen_at;

-- name: drop_device
-- Its cookie counts no more; its cursors go with it.
DELETE FROM devices WHERE id = :id;

-- name: touch_device
-- It was here.
UPDATE devices SET seen_at = MAX(seen_at, :at) WHERE id = :id;

-- name: list_devices
-- All of them, oldest first.
SELECT id, hash, name, created_at, seen_at FROM devices ORDER BY created_at, id;

-- name: save_cursor
-- How far a device has read in a session; it only grows.
INSERT INTO cursors (device, session, version) VALUES (:device, :session, :version)
ON CONFLICT (device, session) DO UPDATE SET version = MAX(version, excluded.version) RETURNING version;

-- name: save_last_session
-- Where the device looked last.
UPDATE devices SET last_session = :session, seen_at = MAX(seen_at, :at) WHERE id = :device RETURNING id;

-- name: last_session
-- Where it looked last; empty when that was deleted.
SELECT last_session FROM devices WHERE id = :device;

-- name: save_reviewed
-- Somebody looked through what happened; that moment only grows.
UPDATE devices SET reviewed_at = MAX(reviewed_at, :at) WHERE id = :device RETURNING reviewed_at;

-- name: reviewed_at
-- When somebody last looked through what happened; before the first time, when the device came in.
SELECT MAX(reviewed_at, created_at) AS reviewed_at FROM devices WHERE id = :device;

-- name: read_positions
-- How far it has read, everywhere.
SELECT session, version FROM cursors WHERE device = :device;

-- name: read_position
-- How far it has read in one session; of one that it never opened, all from before it came in.
SELECT COALESCE(
    (SELECT version FROM cursors WHERE device = :device AND session = :session),
    (SELECT e.version FROM spans s JOIN events e ON e.span = s.span WHERE s.stream = :stream
        AND e.at <= (SELECT created_at FROM devices WHERE id = :device)
        ORDER BY s.number DESC, e.version DESC LIMIT 1),
    0) AS version;

-- name: count_unread
-- The finished texts of the agent behind a device's cursors, for a page of sessions.
SELECT p.value AS session, (
    SELECT COUNT(*) FROM answers t
    WHERE t.session = p.value AND t.version > COALESCE(c.version, 0) AND (c.version IS NOT NULL OR t.at > d.created_at)
) AS unread
FROM json_each(:sessions) p JOIN devices d ON d.id = :device
LEFT JOIN cursors c ON c.device = d.id AND c.session = p.value;

-- name: delete_cursors
-- Gone with their session.
DELETE FROM cursors WHERE session = :session;

-- name: delete_last_session
-- It cannot be opened any more.
UPDATE devices SET last_session = '' WHERE last_session = :session;

-- name: since_texts
-- What the agent said after a version, and where it began.
SELECT COUNT(*) AS messages, MIN(version) AS first FROM answers
WHERE session = :session AND version > :after AND version <= :upto;

-- name: since_counts
-- What else happened after a version.
SELECT COALESCE(SUM(kind = 'ToolCallFinished'), 0) AS tool_calls,
    COALESCE(SUM(kind = 'WaitOpened' AND json_extract(data, '$.event.purpose') IN ('question', 'approval')), 0) AS questions,
    COALESCE(SUM(kind = 'TurnFinished' AND json_extract(data, '$.event.outcome') = 'failed'), 0) AS failures
FROM spans s JOIN events e ON e.span = s.span
WHERE s.stream = :stream AND s.number >= :after / 16 AND e.version > :after AND e.version <= :upto;

-- name: since_tasks
-- The tasks whose end was told after a version, by how they ended.
SELECT t.state, COUNT(*) AS count FROM spans s JOIN events e ON e.span = s.span JOIN tasks t ON t.id = CASE e.kind
    WHEN 'NoteReceived' THEN json_extract(e.data, '$.event.task')
    ELSE json_extract(e.data, '$.event.ref') END
WHERE s.stream = :stream AND s.number >= :after / 16 AND e.version > :after AND e.version <= :upto AND (e.kind = 'NoteReceived'
    OR (e.kind = 'InputReceived' AND json_extract(e.data, '$.event.source') = 'task'))
GROUP BY t.state;

-- name: event_time
-- When the event at a version was.
SELECT e.at FROM spans s JOIN events e ON e.span = s.span
WHERE s.stream = :stream AND s.number = (:version - 1) / 16 AND e.version = :version;
