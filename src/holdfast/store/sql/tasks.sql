-- Tasks: what people and the runtime look at.

-- name: list_tasks
-- A page, newest first; an empty filter fits everything. Keyset paging by (started_at, id).
SELECT * FROM tasks
WHERE foreground = 0 AND (started_at < :before_at OR (started_at = :before_at AND id > :before_id))
    AND started_at >= :since AND (:kind = '' OR kind = :kind) AND (:state = '' OR state = :state)
    AND (:session = '' OR session = :session OR worker = :session) AND (:ended = 0 OR finished_at >= :ended)
    AND (:text = '' OR instr(folded(title || char(10) || command || char(10) || summary), :text) > 0)
ORDER BY started_at DESC, id LIMIT :limit;

-- name: list_all_tasks
-- The same with the commands that a turn waits or waited for; told apart since the index begins with that.
SELECT * FROM tasks
WHERE (started_at < :before_at OR (started_at = :before_at AND id > :before_id))
    AND started_at >= :since AND (:kind = '' OR kind = :kind) AND (:state = '' OR state = :state)
    AND (:session = '' OR session = :session OR worker = :session) AND (:ended = 0 OR finished_at >= :ended)
    AND (:text = '' OR instr(folded(title || char(10) || command || char(10) || summary), :text) > 0)
ORDER BY started_at DESC, id LIMIT :limit;

-- name: count_tasks
-- How many there are in each state, and what their outputs take.
SELECT state, COUNT(*) AS count, SUM(output_bytes - dropped_bytes) AS bytes FROM tasks WHERE foreground = 0 GROUP BY state;

-- name: running_tasks
-- Everything that runs, oldest first.
SELECT * FROM tasks WHERE state = 'running' ORDER BY started_at, id;

-- name: get_task
-- One task.
SELECT * FROM tasks WHERE id = :id;

-- name: tasks_by_id
-- Those of these tasks that are there.
SELECT * FROM tasks WHERE id IN (SELECT value FROM json_each(:tasks));

-- name: find_tasks
-- Ids by prefix; two are enough to know that it is ambiguous, ten make a helpful message.
SELECT id FROM tasks WHERE id >= :prefix AND id < :beyond ORDER BY id LIMIT 10;

-- name: tasks_of_workers
-- The newest task of each of these sessions in which an agent works.
SELECT worker, id FROM tasks WHERE worker IN (SELECT value FROM json_each(:workers)) ORDER BY started_at, id;

-- name: task_event_bytes
-- What the events of tasks take.
SELECT value AS id, (SELECT COALESCE(SUM(LENGTH(e.data)), 0) FROM spans s JOIN events e ON e.span = s.span
    WHERE s.stream = 'task/' || value) AS bytes
FROM json_each(:tasks);

-- name: ended_tasks
-- What may be pruned: ended and not pinned, newest first. Only what a rule looks at and what is written of a prune.
SELECT id, title, state, version, finished_at, output_bytes, dropped_bytes FROM tasks WHERE state <> 'running' AND pinned = 0 ORDER BY finished_at DESC, id;

-- name: task_ids
-- All of them, and whether it is an ended command that a turn waited for: to tell what was left behind.
SELECT id, foreground = 1 AND state <> 'running' AS over FROM tasks;
