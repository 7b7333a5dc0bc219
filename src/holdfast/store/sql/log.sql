-- The log: where it ends, what was accepted, who may write.

-- name: last_seq
-- Where the log ends.
SELECT COALESCE(MAX(seq), 0) FROM events;

-- name: head
-- Where a stream ends; no row if it has no events.
SELECT version, span FROM events
WHERE span = (SELECT span FROM spans WHERE stream = :stream ORDER BY number DESC LIMIT 1)
ORDER BY version DESC LIMIT 1;

-- name: deleted_at
-- When a stream was deleted, if it was.
SELECT at FROM deleted WHERE stream = :stream;

-- name: find_command
-- The first acceptance of a command id.
SELECT digest, stream, version, seq, reply FROM commands WHERE id = :id;

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

-- name: end_lives
-- End the lives of the processes of a node that had the store open before: their leases are free.
UPDATE nodes SET ended_at = :at, ended_reason = :reason WHERE ended_at IS NULL AND name = :name;

-- name: delete_ended_lives
-- Of those that ended, the last few are kept for people to read, and the last one of each node.
DELETE FROM nodes WHERE ended_at IS NOT NULL AND life <= (SELECT MAX(life) FROM nodes) - :kept
    AND EXISTS (SELECT 1 FROM nodes later
        WHERE later.name = nodes.name AND later.life > nodes.life AND later.ended_at IS NOT NULL);
