-- What people look at.

-- name: list_sessions
-- A page of the list, pinned ones first, then newest first; keyset paging by (pinned, updated_at, id). An empty text
-- fits every title.
SELECT * FROM sessions
WHERE archived = :archived AND (pinned < :before_pinned OR (pinned = :before_pinned
    AND (updated_at < :before_at OR (updated_at = :before_at AND id > :before_id))))
    AND (:text = '' OR instr(folded(title), :text) > 0)
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
-- Everything that is not at rest: queued, running, waiting, suspended.
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
-- How long the log is, and where it ends: what was deleted has left gaps.
SELECT COUNT(*) AS events, COALESCE(MAX(seq), 0) AS seq FROM events;

-- name: work_since
-- What ended and what began to wait after a moment, in slots of the same length.
SELECT (at - :since) / :step AS slot, SUM(what = 'turn') AS turns, SUM(what = 'task') AS tasks,
    SUM(state IN ('failed', 'lost')) AS failed, SUM(what = 'wait') AS waits
FROM (
    SELECT finished_at AS at, 'turn' AS what, state FROM turns WHERE finished_at >= :since
    UNION ALL SELECT finished_at, 'task', state FROM tasks WHERE finished_at >= :since AND foreground = 0
    UNION ALL SELECT opened_at, 'wait', '' FROM waits WHERE opened_at >= :since AND purpose <> 'retry'
) GROUP BY slot ORDER BY slot;

-- name: miscounted_sessions
-- For the doctor: sessions whose row does not agree with their events.
SELECT s.id FROM sessions s JOIN (
    SELECT stream, MAX(version) AS version, COUNT(*) AS events,
        SUM(kind = 'InputReceived') AS inputs,
        SUM(kind = 'InputWithdrawn') AS withdrawn,
        SUM(kind = 'ModelResponded' AND json_extract(data, '$.event.text') <> '') AS answers
    FROM events GROUP BY stream
) e ON e.stream = 'session/' || s.id
WHERE s.version <> e.version OR e.version <> e.events OR s.message_count <> e.inputs - e.withdrawn + e.answers;
