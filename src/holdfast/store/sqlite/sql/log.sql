-- Queries of the log in SQLite's own words.

-- name: begin_span
-- The next sixteen versions of a stream are found under this seq.
INSERT INTO spans (stream, number, span) VALUES (:stream, :number, :span);

-- name: insert_event
-- The one place where a fact becomes durable.
INSERT INTO events (seq, stream, version, at, kind, data, crc, command_id, span)
VALUES (:seq, :stream, :version, :at, :kind, :data, :crc, :command_id, :span);

-- name: read_stream
-- Stored bytes of one stream after a version.
SELECT e.data, e.crc FROM spans s JOIN events e ON e.span = s.span
WHERE s.stream = :stream AND s.number >= :after / 16 AND e.version > :after ORDER BY s.number, e.version LIMIT :limit;

-- name: read_all
-- Stored bytes of the whole log after a seq.
SELECT data, crc FROM events WHERE seq > :after ORDER BY seq LIMIT :limit;

-- name: read_kinds
-- Stored bytes of some kinds of events in the whole log after a seq.
SELECT data, crc FROM events WHERE seq > :after AND seq <= :upto AND kind IN :kinds ORDER BY seq LIMIT :limit;

-- name: insert_command
-- Remember that this command was accepted, in the transaction of its events.
INSERT INTO commands (id, digest, seq, stream, version, at, reply)
VALUES (:id, :digest, :seq, :stream, :version, :at, :reply);

-- name: find_lease
-- The token that a write must carry, and the life that has it; no row when that life has ended.
SELECT l.token, l.life FROM leases l JOIN nodes n ON n.life = l.life WHERE l.stream = :stream AND n.ended_at IS NULL;

-- name: save_partial
-- The text so far of the running step, one row, overwritten.
INSERT INTO partials (stream, turn, step, text, thinking, at)
VALUES (:stream, :turn, :step, :text, :thinking, :at)
ON CONFLICT (stream) DO UPDATE SET
    turn = excluded.turn, step = excluded.step, text = excluded.text,
    thinking = excluded.thinking, at = excluded.at;

-- name: delete_partial_of_step
-- The step has its answer, or its partial became a fact.
DELETE FROM partials WHERE stream = :stream AND turn = :turn AND step = :step;

-- name: begin_life
-- Somebody has opened the store.
INSERT INTO nodes (name, version, started_at) VALUES (:name, :version, :at) RETURNING life;

-- name: lease_holder
-- The life that has or had a lease. There is one node, which is not silent while somebody asks.
SELECT n.*, 0 AS silent_ms FROM leases l JOIN nodes n ON n.life = l.life WHERE l.stream = :stream;

-- name: list_nodes
-- The lives of nodes, newest first.
SELECT *, 0 AS silent_ms FROM nodes ORDER BY life DESC;
