-- Queries of the log. `:name` parameters; each query has a name and a line that says its purpose.

-- name: last_seq
-- Where the log ends.
SELECT COALESCE(MAX(seq), 0) FROM events;

-- name: head
-- Where a stream ends; no row if it has no events.
SELECT version, span FROM events
WHERE span = (SELECT span FROM spans WHERE stream = :stream ORDER BY number DESC LIMIT 1)
ORDER BY version DESC LIMIT 1;

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

-- name: deleted_at
-- When a stream was deleted, if it was.
SELECT at FROM deleted WHERE stream = :stream;

-- name: find_command
-- The first acceptance of a command id.
SELECT digest, stream, version, seq, reply FROM commands WHERE id = :id;

-- name: insert_command
-- Remember that this command was accepted, in the transaction of its events.
INSERT INTO commands (id, digest, seq, stream, version, at, reply)
VALUES (:id, :digest, :seq, :stream, :version, :at, :reply);

-- name: last_card_number
-- The highest number of a card.
SELECT COALESCE(MAX(number), 0) FROM cards WHERE number > 0;

-- name: last_token
-- The last fencing token that was given out.
SELECT value FROM counters WHERE name = 'fence';

-- name: set_last_token
-- The same after one more; it only grows.
UPDATE counters SET value = :token WHERE name = 'fence';

-- name: grant_lease
-- Give a stream to a new holder; the previous holder is fenced from now on.
INSERT INTO leases (stream, token, holder, life) VALUES (:stream, :token, :holder, :life)
ON CONFLICT (stream) DO UPDATE SET token = excluded.token, holder = excluded.holder, life = excluded.life;

-- name: find_lease
-- The token that a write must carry, and the life that has it; no row when that life has ended.
SELECT l.token, l.life FROM leases l JOIN nodes n ON n.life = l.life WHERE l.stream = :stream AND n.ended_at IS NULL;

-- name: end_lives
-- End the lives of the processes that had the store open before: their leases are free.
UPDATE nodes SET ended_at = :at, ended_reason = :reason WHERE ended_at IS NULL;

-- name: delete_ended_lives
-- Of those that ended, the last few are kept for people to read.
DELETE FROM nodes WHERE ended_at IS NOT NULL AND life <= (SELECT MAX(life) FROM nodes) - :kept;

-- name: begin_life
-- Somebody has opened the store.
INSERT INTO nodes (name, version) VALUES (:name, :version) RETURNING life;

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
