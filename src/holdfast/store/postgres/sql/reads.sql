-- Reads that SQLite and PostgreSQL write in different words, and those that look at the events themselves.

-- name: list_sessions
-- A page of the list, pinned ones first, then newest first; keyset paging by (pinned, updated_at, id). An empty text fits
-- every title, an empty kind every session. Three ranges of the index, each in order: with an OR a page in the middle of a
-- million sessions takes two thousand times as long.
SELECT * FROM (
    (SELECT * FROM sessions WHERE archived = :archived AND pinned = :before_pinned AND updated_at = :before_at AND id > :before_id
        AND (:text = '' OR has_text(:text, title)) AND (:kind = '' OR :kind = CASE
        WHEN id IN (SELECT session FROM runs) THEN 'worker' WHEN task <> '' THEN 'background' ELSE 'mine' END)
    ORDER BY id LIMIT :limit)
    UNION ALL
    (SELECT * FROM sessions WHERE archived = :archived AND pinned = :before_pinned AND updated_at < :before_at
        AND (:text = '' OR has_text(:text, title)) AND (:kind = '' OR :kind = CASE
        WHEN id IN (SELECT session FROM runs) THEN 'worker' WHEN task <> '' THEN 'background' ELSE 'mine' END)
    ORDER BY updated_at DESC, id LIMIT :limit)
    UNION ALL
    (SELECT * FROM sessions WHERE archived = :archived AND :before_pinned AND pinned = FALSE
        AND (:text = '' OR has_text(:text, title)) AND (:kind = '' OR :kind = CASE
        WHEN id IN (SELECT session FROM runs) THEN 'worker' WHEN task <> '' THEN 'background' ELSE 'mine' END)
    ORDER BY updated_at DESC, id LIMIT :limit)
) page ORDER BY pinned DESC, updated_at DESC, id LIMIT :limit;

-- name: count_descendants
-- How many agents at work and cards not yet done descend from a session.
SELECT (SELECT COUNT(*) FROM tasks JOIN sessions ON sessions.id = tasks.worker
        WHERE tasks.state = 'running' AND tasks.kind = 'agent' AND sessions.ancestors::JSON ->> 0 = :root)
     + (SELECT COUNT(*) FROM cards WHERE root = :root AND status NOT IN ('done', 'archived')) AS open;

-- name: read_position
-- How far it has read in one session; of one that it never opened, all from before it came in.
SELECT COALESCE(
    (SELECT version FROM cursors WHERE device = :device AND session = :session),
    (SELECT e.version FROM spans s JOIN events e ON e.span = s.span WHERE s.stream = :stream
        AND e.at <= (SELECT created_at FROM devices WHERE id = :device)
        ORDER BY s.number DESC, e.version DESC LIMIT 1),
    0) AS version;

-- name: since_counts
-- What else happened after a version.
SELECT COUNT(*) FILTER (WHERE kind = 'ToolCallFinished') AS tool_calls,
    COUNT(*) FILTER (WHERE kind = 'WaitOpened'
        AND event_json(data) #>> '{event,purpose}' IN ('question', 'approval')) AS questions,
    COUNT(*) FILTER (WHERE kind = 'TurnFinished' AND event_json(data) #>> '{event,outcome}' = 'failed') AS failures
FROM spans s JOIN events e ON e.span = s.span
WHERE s.stream = :stream AND s.number >= :after / 16 AND e.version > :after AND e.version <= :upto;

-- name: since_tasks
-- The tasks whose end was reported after a version, by how they ended.
SELECT t.state, COUNT(*) AS count FROM spans s JOIN events e ON e.span = s.span JOIN tasks t ON t.id = CASE e.kind
    WHEN 'NoteReceived' THEN event_json(e.data) #>> '{event,task}'
    WHEN 'InputReceived' THEN event_json(e.data) #>> '{event,ref}' END
WHERE s.stream = :stream AND s.number >= :after / 16 AND e.version > :after AND e.version <= :upto
    AND CASE e.kind WHEN 'NoteReceived' THEN TRUE
        WHEN 'InputReceived' THEN event_json(e.data) #>> '{event,source}' = 'task' ELSE FALSE END
GROUP BY t.state;

-- name: event_time
-- When the event at a version was.
SELECT e.at FROM spans s JOIN events e ON e.span = s.span
WHERE s.stream = :stream AND s.number = (:version - 1) / 16 AND e.version = :version;

-- name: session_of_chat
-- The session that began last in a chat, in the order of the log: clocks can be set back.
SELECT n.* FROM sessions n JOIN spans s ON s.stream = 'session/' || n.id AND s.number = 0
WHERE n.chat = :chat AND n.chat <> '' ORDER BY s.span DESC LIMIT 1;

-- name: task_event_bytes
-- What the events of tasks take.
SELECT t.id, (SELECT COALESCE(SUM(octet_length(e.data)), 0) FROM spans s JOIN events e ON e.span = s.span
    WHERE s.stream = 'task/' || t.id) AS bytes
FROM tasks t WHERE t.id IN :tasks;

-- name: count_events
-- The size and the position of the log: its end, and that of the stream which says what was deleted.
SELECT last.seq - COALESCE((SELECT value FROM counters WHERE name = 'events/deleted'), 0) AS events, last.seq AS seen,
    COALESCE((SELECT e.version FROM spans s JOIN events e ON e.span = s.span WHERE s.stream = 'system'
        ORDER BY s.number DESC, e.version DESC LIMIT 1), 0) AS deletions
FROM (SELECT COALESCE(MAX(seq), 0) AS seq FROM events) last;

-- name: count_sessions
-- How many there are. Kept by triggers.
SELECT COALESCE((SELECT value FROM counters WHERE name = 'sessions'), 0) AS sessions,
    COALESCE((SELECT value FROM counters WHERE name = 'sessions/archived'), 0) AS archived,
    COALESCE((SELECT value FROM counters WHERE name = 'messages'), 0) AS messages;

-- name: count_tasks
-- How many there are in each state, and what their outputs take. Kept by triggers.
SELECT substr(c.name, 7) AS state, c.value AS count, COALESCE(b.value, 0) AS bytes
FROM counters c LEFT JOIN counters b ON b.name = 'bytes/' || substr(c.name, 7)
WHERE c.name >= 'tasks/' AND c.name < 'tasks0' AND c.value > 0;

-- name: recount
-- Make the counts anew that triggers keep.
SELECT recount();

-- name: wrong_counts
-- For the doctor: the counts that differ from what they count.
SELECT name FROM (
    SELECT 'sessions' AS name, COUNT(*) AS value FROM sessions
    UNION ALL SELECT 'sessions/archived', COUNT(*) FROM sessions WHERE archived
    UNION ALL SELECT 'messages', COALESCE(SUM(message_count), 0)::BIGINT FROM sessions
    UNION ALL SELECT 'events/deleted', COALESCE(MAX(seq), 0) - COUNT(*) FROM events
    UNION ALL SELECT 'tasks/' || state, COUNT(*) FROM tasks WHERE NOT foreground GROUP BY state
) found LEFT JOIN counters c USING (name) WHERE found.value <> COALESCE(c.value, 0) ORDER BY name;

-- name: count_new_events
-- The same, but only what came after a place: a long log is counted once.
SELECT (SELECT COUNT(*) FROM events WHERE seq > :seen) AS events, (SELECT COALESCE(MAX(seq), 0) FROM events) AS seen,
    COALESCE((SELECT e.version FROM spans s JOIN events e ON e.span = s.span WHERE s.stream = 'system'
        ORDER BY s.number DESC, e.version DESC LIMIT 1), 0) AS deletions;

-- name: find_deleted
-- Deleted streams by prefix.
SELECT stream FROM deleted WHERE stream >= :prefix AND stream < :beyond ORDER BY stream LIMIT 10;

-- name: miscounted_sessions
-- For the doctor: sessions whose row does not agree with their events.
SELECT s.id FROM sessions s JOIN (
    SELECT p.stream, MAX(version) AS version, COUNT(*) AS events,
        COUNT(*) FILTER (WHERE kind = 'InputReceived') AS inputs,
        COUNT(*) FILTER (WHERE kind = 'InputWithdrawn') AS withdrawn,
        COUNT(*) FILTER (WHERE kind = 'ModelResponded' AND event_json(data) #>> '{event,text}' <> '') AS answers
    FROM spans p JOIN events v ON v.span = p.span GROUP BY p.stream
) e ON e.stream = 'session/' || s.id
WHERE s.version <> e.version OR e.version <> e.events OR s.message_count <> e.inputs - e.withdrawn + e.answers;
