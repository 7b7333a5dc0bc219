-- Reads that SQLite and PostgreSQL write in different words.

-- name: list_sessions
-- A page of the list, pinned ones first, then newest first; keyset paging by (pinned, updated_at, id). An empty text
-- fits every title, an empty kind every session.
SELECT * FROM sessions
WHERE archived = :archived AND (pinned < :before_pinned OR (pinned = :before_pinned
    AND (updated_at < :before_at OR (updated_at = :before_at AND id > :before_id))))
    AND (:text = '' OR has_text(:text, title))
    AND (:kind = '' OR :kind = CASE WHEN id IN (SELECT session FROM runs) THEN 'worker'
        WHEN task <> '' THEN 'background' ELSE 'mine' END)
ORDER BY pinned DESC, updated_at DESC, id LIMIT :limit;

-- name: count_descendants
-- How many agents at work and cards not yet done descend from a session.
SELECT (SELECT COUNT(*) FROM tasks JOIN sessions ON sessions.id = tasks.worker
        WHERE tasks.state = 'running' AND tasks.kind = 'agent' AND sessions.ancestors ->> 0 = :root)
     + (SELECT COUNT(*) FROM cards WHERE root = :root AND status NOT IN ('done', 'archived')) AS open;

-- name: find_partial
-- The text so far of a stream.
SELECT turn, step, text, thinking, at FROM partials WHERE stream = :stream;

-- name: count_sessions
-- How many there are.
SELECT COUNT(*) AS sessions, COUNT(*) FILTER (WHERE archived) AS archived,
    COALESCE(SUM(message_count), 0) AS messages FROM sessions;

-- name: count_tasks
-- How many there are in each state, and what their outputs take.
SELECT state, COUNT(*) AS count, SUM(output_bytes - dropped_bytes) AS bytes FROM tasks WHERE foreground = FALSE GROUP BY state;
