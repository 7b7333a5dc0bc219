-- What the projections need besides their rows (`projected_rows.py`), in the transaction that appends an event.

-- name: open_wait
-- The wait of a session that nobody has answered.
SELECT * FROM waits WHERE session = :session AND state = 'open';

-- name: link_card
-- It waits for another.
INSERT INTO card_links (parent, child) VALUES (:parent, :child) ON CONFLICT DO NOTHING;

-- name: unlink_card
-- Not any more.
DELETE FROM card_links WHERE parent = :parent AND child = :child;

-- name: delete_waits
-- Gone with their session.
DELETE FROM waits WHERE session = :session;

-- name: delete_session
-- Gone from the list.
DELETE FROM sessions WHERE id = :session;

-- name: delete_turns
-- And its turns.
DELETE FROM turns WHERE session = :session;

-- name: delete_answers
-- And what was said in it.
DELETE FROM answers WHERE session = :session;

-- name: delete_events
-- And its events: somebody asked for it.
DELETE FROM events WHERE span IN (SELECT span FROM spans WHERE stream = :stream);

-- name: delete_spans
-- And where they were.
DELETE FROM spans WHERE stream = :stream;

-- name: delete_partials
-- And what it was about to say.
DELETE FROM partials WHERE stream = :stream;

-- name: delete_lease
-- And the right to work on it: a worker that still tries is fenced.
DELETE FROM leases WHERE stream = :stream;

-- name: mark_stream_deleted
-- What is left: that it existed.
INSERT INTO deleted (stream, at) VALUES (:stream, :at);

-- name: delete_task
-- Pruned.
DELETE FROM tasks WHERE id = :task;
