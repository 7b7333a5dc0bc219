-- The lives of nodes, by the clock of the database.

-- name: next_life
-- The number of a new life. A node knows it before it begins that life, so that it knows its own if the answer is lost.
SELECT nextval(pg_get_serial_sequence('nodes', 'life'));

-- name: begin_life
-- Somebody has opened the store; the life ends unless it is renewed.
INSERT INTO nodes (life, name, version, labels, started_at, heard_at, expires_at)
SELECT :life, :name, :version, :labels, c.now, c.now, c.now + :lease
FROM (SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT AS now) c;

-- name: renew_life
-- A sign of life, and whether the node is to hand its work over; no row if the life has ended.
UPDATE nodes SET heard_at = c.now, expires_at = c.now + :lease
FROM (SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT AS now) c
WHERE life = :life AND ended_at IS NULL RETURNING draining;

-- name: name_in_use
-- Whether another process has this name and is alive.
SELECT EXISTS (SELECT 1 FROM nodes WHERE name = :name AND life NOT IN :own AND ended_at IS NULL
    AND expires_at >= EXTRACT(EPOCH FROM clock_timestamp()) * 1000);

-- name: lost_lives
-- The lives that were not renewed in time, and those that missed a renewal and whose connection is closed.
SELECT n.life, n.name, n.heard_at, COALESCE(n.expires_at, 0) < c.now AS silent
FROM nodes n, (SELECT EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS now) c
WHERE n.ended_at IS NULL AND n.life <> :life AND (COALESCE(n.expires_at, 0) < c.now
    OR (n.expires_at < c.now + :lease / 2 AND NOT EXISTS (SELECT 1 FROM pg_locks k
        WHERE k.locktype = 'advisory' AND k.classid::BIGINT = :key AND k.granted
            AND k.database = (SELECT oid FROM pg_database WHERE datname = current_database())
            AND k.objid::BIGINT = hashtext(:schema || '/' || n.name)::BIGINT & 4294967295)));

-- name: end_life
-- The life of a node is over: its leases are free.
UPDATE nodes SET ended_at = (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT, ended_reason = :reason
WHERE life = :life AND ended_at IS NULL;

-- name: lease_holder
-- The life that has or had a lease, and for how long it has been silent.
SELECT n.*, ((EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT - n.heard_at) AS silent_ms
FROM leases l JOIN nodes n ON n.life = l.life WHERE l.stream = :stream;

-- name: list_nodes
-- The lives of nodes, newest first.
SELECT *, ((EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT - heard_at) AS silent_ms FROM nodes ORDER BY life DESC;

-- name: drain_node
-- Ask a node that lives to hand over what it works on.
UPDATE nodes SET draining = TRUE WHERE name = :name AND ended_at IS NULL;

-- name: forget_node
-- Forget a node whose lives have all ended; what was bound to it is free.
DELETE FROM nodes WHERE name = :name AND NOT EXISTS (
    SELECT 1 FROM nodes alive WHERE alive.name = :name AND alive.ended_at IS NULL);

-- name: release_leases
-- Give back leases of a life, besides some. Of sessions whose first event does not say which node has their directory,
-- the lease does: they are free when the life ends.
DELETE FROM leases WHERE life = :life AND stream NOT IN :kept AND NOT EXISTS (
    SELECT 1 FROM sessions s WHERE s.node IN ('', 'local') AND 'session/' || s.id = leases.stream);

-- name: pass_leases_on
-- Before old lives are deleted: where only the lease says which node has the directory of a session, the last life of that
-- node that ended has it from now on.
UPDATE leases SET life = last.life
FROM nodes old, (SELECT name, MAX(life) AS life FROM nodes WHERE ended_at IS NOT NULL GROUP BY name) last
WHERE leases.life = old.life AND last.name = old.name AND old.life < last.life AND old.ended_at IS NOT NULL
    AND old.life <= (SELECT MAX(life) FROM nodes) - :kept
    AND EXISTS (SELECT 1 FROM sessions s WHERE s.node IN ('', 'local') AND 'session/' || s.id = leases.stream);

-- name: free_lease
-- Give back one lease of a life: another node is to work on that session.
DELETE FROM leases WHERE stream = :stream AND life = :life;
