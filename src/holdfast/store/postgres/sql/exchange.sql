-- What nodes ask each other, and the outputs that they keep for each other.

-- name: ask_node
-- Ask a node; it must take the request within some milliseconds.
INSERT INTO node_requests (id, node, asked_by, body, expires_at)
VALUES (:id, :node, :asked_by, :body, (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT + :within);

-- name: wake_node
-- A hint for one node.
SELECT pg_notify(:channel, '');

-- name: take_requests
-- What this node is asked, each once.
UPDATE node_requests SET taken = TRUE
WHERE node = :node AND NOT taken AND expires_at > EXTRACT(EPOCH FROM clock_timestamp()) * 1000
RETURNING id, asked_by, body;

-- name: answer_request
-- The answer; whoever asked takes it away.
UPDATE node_requests SET answer = :answer WHERE id = :id;

-- name: take_answers
-- What others answered to this node, each once.
DELETE FROM node_requests WHERE asked_by = :node AND answer IS NOT NULL RETURNING id, answer;

-- name: withdraw_request
-- Nobody waits any longer; whether it was taken, and the answer if there is one by now.
DELETE FROM node_requests WHERE id = :id RETURNING taken, answer;

-- name: delete_old_requests
-- Requests of nodes that ended before the answer came.
DELETE FROM node_requests WHERE expires_at < EXTRACT(EPOCH FROM clock_timestamp()) * 1000 - :age;

-- name: copy_output
-- A piece of an output.
INSERT INTO output_copies (task, start, data) VALUES (:task, :start, :data)
ON CONFLICT (task, start) DO UPDATE SET data = EXCLUDED.data;

-- name: read_output_copy
-- The first piece that ends behind an offset.
SELECT start, data FROM output_copies WHERE task = :task AND start + length(data) > :offset ORDER BY start LIMIT 1;

-- name: drop_output_copies
-- The outputs of some tasks.
DELETE FROM output_copies WHERE task IN :tasks;

-- name: drop_pruned_copies
-- The outputs of tasks that were pruned.
DELETE FROM output_copies c WHERE NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = c.task);

-- name: output_copy_to_index
-- Of an output the pieces at its beginning and at its end.
SELECT data FROM output_copies WHERE task = :task AND (start < :head OR start + length(data) > :tail) ORDER BY start;

-- name: agree_on_number
-- Whoever comes first decides.
INSERT INTO counters (name, value) VALUES (:name, :number) ON CONFLICT (name) DO NOTHING;

-- name: agreed_number
-- The number under a name.
SELECT value FROM counters WHERE name = :name;

-- name: note_looks
-- Somebody looks at these streams now, by the clock of the server.
INSERT INTO looks (stream, at)
SELECT stream, (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT FROM unnest(:streams::TEXT[]) t (stream)
ON CONFLICT (stream) DO UPDATE SET at = excluded.at;

-- name: look_age
-- How long ago somebody looked at a stream.
SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT - at FROM looks WHERE stream = :stream;

-- name: delete_old_looks
-- Nobody asks for those of yesterday.
DELETE FROM looks WHERE at < EXTRACT(EPOCH FROM clock_timestamp()) * 1000 - 86400000;
