-- What people look at.

-- name: list_sessions
-- A page of the list, pinned ones first, then newest first; keyset paging by (pinned, updated_at, id).
SELECT * FROM sessions
WHERE archived = :archived AND (pinned < :before_pinned OR (pinned = :before_pinned
    AND (updated_at < :before_at OR (updated_at = :before_at AND id > :before_id))))
ORDER BY pinned DESC, updated_at DESC, id LIMIT :limit;

-- name: get_session
-- One session.
SELECT * FROM sessions WHERE id = :session;

-- name: find_sessions
-- Ids by prefix; two are enough to know that it is ambiguous, ten make a helpful message.
SELECT id, title FROM sessions WHERE id >= :prefix AND id < :beyond ORDER BY id LIMIT 10;

-- name: find_deleted
-- Deleted streams by prefix.
SELECT stream FROM deleted WHERE stream >= :prefix AND stream < :beyond ORDER BY stream LIMIT 10;

-- name: sessions_at_work
-- Everything that is not at rest: queued, running, waiting, suspended. Asked at a start and for `why`: an index would be
-- one more page in the commit of every message, and saves 45 ms with 100,000 sessions.
SELECT * FROM sessions WHERE queued > 0 OR turn_state IN ('running', 'waiting', 'suspended') ORDER BY id;

-- name: open_waits
-- The inbox: everything that waits for a person, oldest first.
SELECT w.*, s.title FROM waits w JOIN sessions s ON s.id = w.session
WHERE w.state = 'open' AND w.purpose <> 'retry' ORDER BY w.opened_at, w.id;

-- name: find_waits
-- Waits by prefix of their id, open ones first.
SELECT w.*, s.title FROM waits w JOIN sessions s ON s.id = w.session
WHERE w.id >= :prefix AND w.id < :beyond ORDER BY w.state <> 'open', w.id LIMIT 10;

-- name: list_turns
-- The turns of a session, in order.
SELECT * FROM turns WHERE session = :session ORDER BY turn;

-- name: count_sessions
-- How many there are.
SELECT COUNT(*) AS sessions, COALESCE(SUM(archived), 0) AS archived,
    COALESCE(SUM(message_count), 0) AS messages FROM sessions;

-- name: count_events
-- How long the log is.
SELECT COUNT(*) FROM events;

-- name: miscounted_sessions
-- For the doctor: sessions whose row does not agree with their events.
SELECT s.id FROM sessions s JOIN (
    SELECT p.stream, MAX(version) AS version, COUNT(*) AS events,
        SUM(kind = 'InputReceived') AS inputs,
        SUM(kind = 'InputWithdrawn') AS withdrawn,
        SUM(kind = 'ModelResponded' AND json_extract(data, '$.event.text') <> '') AS answers
    FROM spans p JOIN events v ON v.span = p.span GROUP BY p.stream
) e ON e.stream = 'session/' || s.id
WHERE s.version <> e.version OR e.version <> e.events OR s.message_count <> e.inputs - e.withdrawn + e.answers;
