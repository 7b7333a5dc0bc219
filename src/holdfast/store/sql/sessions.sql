-- Sessions with their turns and waits; numbers; nodes.

-- name: sessions_in
-- The sessions that were started in a directory, newest first. Those of a card belong to its workers.
SELECT * FROM sessions WHERE archived = FALSE AND cwd = :cwd
    AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.session = sessions.id)
ORDER BY updated_at DESC, id LIMIT :limit;

-- name: get_session
-- One session.
SELECT * FROM sessions WHERE id = :id;

-- name: find_sessions
-- Ids by prefix.
SELECT id FROM sessions WHERE id >= :prefix AND id < :beyond ORDER BY id LIMIT 10;

-- name: unfinished_sessions
-- Everything that is not at rest: queued, running, waiting, suspended. SQLite has no index for it: that would be one more
-- page in the commit of every message, and saves 45 ms with 100,000 sessions. On a server every node asks again and again.
SELECT * FROM sessions
WHERE queued > 0 OR compaction_requested OR compaction_running OR turn_state IN ('running', 'waiting', 'suspended')
ORDER BY id;

-- name: unclaimed_sessions
-- Of those, the ones that no other node works on.
SELECT s.* FROM sessions s
WHERE (s.queued > 0 OR s.compaction_requested OR s.compaction_running
        OR s.turn_state IN ('running', 'waiting', 'suspended'))
    AND NOT EXISTS (SELECT 1 FROM leases l JOIN nodes n ON n.life = l.life
        WHERE l.stream = 'session/' || s.id AND n.ended_at IS NULL AND n.name <> :node)
ORDER BY s.id;

-- name: resettable_sessions
-- Those whose chapter has something in it: what a reset could be about.
SELECT id, profile, reset_policy, first_input_at, last_active_at FROM sessions WHERE first_input_at > 0 AND NOT archived ORDER BY id;

-- name: resettable_sessions_with_policy
-- Of those only the ones that have a reset policy of their own.
SELECT id, profile, reset_policy, first_input_at, last_active_at FROM sessions
WHERE first_input_at > 0 AND NOT archived AND reset_policy <> '{}' ORDER BY id;

-- name: unused_sessions
-- At rest, not pinned, with nothing running, not touched since a moment, and no card will continue it; oldest first.
SELECT * FROM sessions s
WHERE archived = :archived AND pinned = FALSE AND updated_at < :before AND queued = 0
    AND NOT compaction_requested AND NOT compaction_running
    AND (turn_state IS NULL OR turn_state NOT IN ('running', 'waiting', 'suspended'))
    AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.state = 'running' AND (t.session = s.id OR t.worker = s.id))
    AND id NOT IN (SELECT r.session FROM runs r JOIN cards c ON c.id = r.card WHERE c.status NOT IN ('done', 'archived'))
ORDER BY updated_at, id;

-- name: open_waits
-- The inbox: everything that waits for a person, oldest first.
SELECT w.*, s.title FROM waits w JOIN sessions s ON s.id = w.session
WHERE w.state = 'open' AND w.purpose <> 'retry' ORDER BY w.opened_at, w.id;

-- name: failed_turns
-- The inbox: sessions whose last turn failed and nobody has dealt with that, oldest first. Not those whose failure
-- somebody else was told: the card of a run, the agent that had started an agent.
SELECT s.id AS session, s.title, s.version, t.turn, t.reason, t.finished_at
FROM sessions s JOIN turns t ON t.session = s.id AND t.turn = s.failed_turn
WHERE s.failed_turn > 0
    AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.session = s.id AND s.failed_turn > r.after_turn
        AND (r.until_turn IS NULL OR s.failed_turn <= r.until_turn))
    AND NOT EXISTS (SELECT 1 FROM tasks k WHERE k.id = s.task AND k.call <> '')
ORDER BY t.finished_at, s.id;

-- name: get_wait
-- One wait.
SELECT w.*, s.title FROM waits w JOIN sessions s ON s.id = w.session WHERE w.id = :id;

-- name: find_waits
-- Ids by prefix: of the open ones, or where none is open of all.
SELECT id FROM waits
WHERE id >= :prefix AND id < :beyond AND (state = 'open' OR NOT EXISTS
    (SELECT 1 FROM waits o WHERE o.id >= :prefix AND o.id < :beyond AND o.state = 'open'))
ORDER BY id LIMIT 10;

-- name: list_turns
-- The turns of a session, in order.
SELECT * FROM turns WHERE session = :session ORDER BY turn;

-- name: work_since
-- What ended and what began to wait after a moment, in slots of the same length.
SELECT :since + (moment - :since) / :step * :step AS at,
    COUNT(*) FILTER (WHERE what = 'turn') AS turns, COUNT(*) FILTER (WHERE what = 'task') AS tasks,
    COUNT(*) FILTER (WHERE state IN ('failed', 'lost')) AS failed, COUNT(*) FILTER (WHERE what = 'wait') AS waits
FROM (
    SELECT finished_at AS moment, 'turn' AS what, state FROM turns WHERE finished_at >= :since
    UNION ALL SELECT finished_at, 'task', state FROM tasks WHERE finished_at >= :since AND foreground = FALSE
    UNION ALL SELECT opened_at, 'wait', '' FROM waits WHERE opened_at >= :since AND purpose <> 'retry'
) work GROUP BY 1 ORDER BY 1;

-- name: spend_since
-- What the turns that ended after a moment took.
SELECT COALESCE(SUM(cost), 0.0) AS cost, COALESCE(SUM(input_tokens + output_tokens), 0) AS tokens,
    COUNT(*) FILTER (WHERE cost IS NULL AND input_tokens + output_tokens > 0) AS unpriced
FROM turns WHERE finished_at >= :since;

-- name: nodes_of_sessions
-- The nodes that worked on these sessions last, or that have their directories.
SELECT s.id, COALESCE((SELECT n.name FROM leases l JOIN nodes n ON n.life = l.life
    WHERE l.stream = 'session/' || s.id), s.node) FROM sessions s WHERE s.id IN :sessions;

-- name: work_of_nodes
-- What the nodes that live work on.
SELECT n.name AS node, l.stream, s.title FROM sessions s
JOIN leases l ON l.stream = 'session/' || s.id JOIN nodes n ON n.life = l.life
WHERE n.ended_at IS NULL AND (s.queued > 0 OR s.compaction_requested OR s.compaction_running
    OR s.turn_state IN ('running', 'waiting', 'suspended'))
UNION ALL
SELECT n.name, l.stream, '' FROM leases l JOIN nodes n ON n.life = l.life
WHERE n.ended_at IS NULL AND l.stream >= 'duty/' AND l.stream < 'duty0'
ORDER BY 2;
