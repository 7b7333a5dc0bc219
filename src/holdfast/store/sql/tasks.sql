-- Tasks: what people and the runtime look at.

-- name: list_background_tasks
-- A page, newest first; an empty filter fits everything. Keyset paging by (started_at, id): the index is entered at its
-- first column, since an OR alone reads everything that is newer.
SELECT * FROM tasks
WHERE foreground = FALSE AND started_at <= :before_at AND (started_at < :before_at OR (started_at = :before_at AND id > :before_id))
    AND started_at >= :since AND (:kind = '' OR kind = :kind) AND (:state = '' OR state = :state)
    AND (:session = '' OR session = :session OR worker = :session) AND (:ended = 0 OR finished_at >= :ended)
    AND (:text = '' OR has_text(:text, title, command, summary))
ORDER BY started_at DESC, id LIMIT :limit;

-- name: list_tasks
-- The same with the commands that a turn waits or waited for. Two ranges, since the index begins with that.
SELECT * FROM (
    SELECT * FROM (SELECT * FROM tasks WHERE foreground = FALSE AND started_at <= :before_at AND (started_at < :before_at OR (started_at = :before_at AND id > :before_id))
        AND started_at >= :since AND (:kind = '' OR kind = :kind) AND (:state = '' OR state = :state)
        AND (:session = '' OR session = :session OR worker = :session) AND (:ended = 0 OR finished_at >= :ended)
        AND (:text = '' OR has_text(:text, title, command, summary))
    ORDER BY started_at DESC, id LIMIT :limit) background
    UNION ALL
    SELECT * FROM (SELECT * FROM tasks WHERE foreground = TRUE AND started_at <= :before_at AND (started_at < :before_at OR (started_at = :before_at AND id > :before_id))
        AND started_at >= :since AND (:kind = '' OR kind = :kind) AND (:state = '' OR state = :state)
        AND (:session = '' OR session = :session OR worker = :session) AND (:ended = 0 OR finished_at >= :ended)
        AND (:text = '' OR has_text(:text, title, command, summary))
    ORDER BY started_at DESC, id LIMIT :limit) waited_for
) page ORDER BY started_at DESC, id LIMIT :limit;

-- name: running_tasks
-- Everything that runs, oldest first.
SELECT * FROM tasks WHERE state = 'running' ORDER BY started_at, id;

-- name: get_task
-- One task.
SELECT * FROM tasks WHERE id = :id;

-- name: tasks_by_id
-- Those of these tasks that are there.
SELECT * FROM tasks WHERE id IN :tasks;

-- name: find_tasks
-- Ids by prefix.
SELECT id FROM tasks WHERE id >= :prefix AND id < :beyond ORDER BY id LIMIT 10;

-- name: tasks_of_workers
-- The newest task of each of these sessions in which an agent works.
SELECT worker, id FROM tasks WHERE worker IN :workers ORDER BY started_at, id;

-- name: ended_tasks
-- What may be pruned: ended and not pinned, newest first. Only what a rule looks at and what is written of a prune.
SELECT id, title, state, version, finished_at, output_bytes, dropped_bytes FROM tasks
WHERE state <> 'running' AND NOT pinned ORDER BY finished_at DESC, id;

-- name: task_ids
-- All of them, and whether it is an ended command that a turn waited for: to tell what was left behind.
SELECT id, foreground AND state <> 'running' AS over FROM tasks;
