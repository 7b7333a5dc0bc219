-- The log in the words of PostgreSQL. What a batch of appends must know is asked for all of it at once.

-- name: take_turn
-- One node at a time: locks are released when the commit can be seen, so the order of seq is the order of commits.
SELECT pg_advisory_xact_lock(:key::INTEGER, hashtext(:schema));

-- name: announce_presence
-- Say that this node has the store open, as long as this connection lasts; false if another process says so.
SELECT pg_try_advisory_lock(:key::INTEGER, hashtext(:node));

-- name: wait_for_disk
-- A commit that is acknowledged is on the disk, also where the server is set up, now or later, to be quicker than that.
SELECT set_config('synchronous_commit', COALESCE(NULLIF(current_setting('synchronous_commit'), 'off'), 'on'), FALSE);

-- name: log_state
-- Where the log ends, the last fencing token, whether our life goes on, whether there are other nodes, and whether this
-- one takes nothing new.
SELECT (SELECT COALESCE(MAX(seq), 0) FROM events), (SELECT value FROM counters WHERE name = 'fence'),
    EXISTS (SELECT 1 FROM nodes WHERE life = :life AND ended_at IS NULL),
    EXISTS (SELECT 1 FROM nodes WHERE life <> :life AND ended_at IS NULL),
    EXISTS (SELECT 1 FROM nodes WHERE life = :life AND draining);

-- name: heads_of
-- Where streams end; no row for one without events.
SELECT w.stream, h.version, h.span FROM unnest(:streams) w(stream) JOIN LATERAL (
    SELECT e.version, e.span FROM events e
    WHERE e.span = (SELECT s.span FROM spans s WHERE s.stream = w.stream ORDER BY s.number DESC LIMIT 1)
    ORDER BY e.version DESC LIMIT 1) h ON TRUE;

-- name: deleted_among
-- Which of these streams were deleted.
SELECT stream FROM deleted WHERE stream IN :streams;

-- name: leases_of
-- The tokens that writes must carry, and the lives that have them, of those that have not ended.
SELECT l.stream, l.token, l.life FROM leases l JOIN nodes n ON n.life = l.life
WHERE l.stream IN :streams AND n.ended_at IS NULL;

-- name: commands_of
-- The first acceptances of command ids.
SELECT id, digest, stream, version, seq, reply FROM commands WHERE id IN :ids;

-- name: open_waits_of
-- The waits of sessions that nobody has answered.
SELECT * FROM waits WHERE session IN :sessions AND state = 'open';

-- name: insert_events
-- The one place where facts become durable.
INSERT INTO events (seq, stream, version, at, kind, data, crc, command_id, span)
SELECT * FROM unnest(:seqs, :streams, :versions, :ats, :kinds, :data, :crcs, :commands, :spans);

-- name: begin_spans
-- The next sixteen versions of a stream are found under this seq.
INSERT INTO spans (stream, number, span) SELECT * FROM unnest(:streams, :numbers, :spans);

-- name: insert_commands
-- Remember that these commands were accepted, in the transaction of their events.
INSERT INTO commands (id, digest, seq, stream, version, at, reply)
SELECT * FROM unnest(:ids, :digests, :seqs, :streams, :versions, :ats, :replies);

-- name: read_stream
-- As many stored lines of one stream after a version as fit into a page; a line that does not would travel in vain.
SELECT data, crc FROM (
    SELECT data, crc, version, SUM(octet_length(data)) OVER (ORDER BY version) - octet_length(data) AS before FROM (
        SELECT e.data, e.crc, e.version FROM spans s JOIN events e ON e.span = s.span
        WHERE s.stream = :stream AND s.number >= :after / 16 AND e.version > :after
        ORDER BY s.number, e.version LIMIT :limit
    ) next_ones
) page WHERE before < :size ORDER BY version;

-- name: read_all
-- As many stored lines of the whole log after a seq as fit into a page.
SELECT data, crc FROM (
    SELECT data, crc, seq, SUM(octet_length(data)) OVER (ORDER BY seq) - octet_length(data) AS before
    FROM (SELECT data, crc, seq FROM events WHERE seq > :after ORDER BY seq LIMIT :limit) next_ones
) page WHERE before < :size ORDER BY seq;

-- name: read_kinds
-- The same of some kinds of events, up to a seq.
SELECT data, crc FROM (
    SELECT data, crc, seq, SUM(octet_length(data)) OVER (ORDER BY seq) - octet_length(data) AS before FROM (
        SELECT data, crc, seq FROM events WHERE seq > :after AND seq <= :upto AND kind IN :kinds
        ORDER BY seq LIMIT :limit
    ) next_ones
) page WHERE before < :size ORDER BY seq;

-- name: new_events
-- What was committed after a seq, by any node.
SELECT seq, stream, kind FROM events WHERE seq > :after ORDER BY seq LIMIT :limit;

-- name: count_change
-- Rows beside the log have changed, which other nodes keep in memory.
INSERT INTO counters (name, value) VALUES (:name, 1) ON CONFLICT (name) DO UPDATE SET value = counters.value + 1;

-- name: changes_beside_log
-- How often that happened, of each kind.
SELECT name, value FROM counters WHERE name IN ('devices', 'settings');

-- name: notify_nodes
-- Notify the other nodes of a commit.
SELECT pg_notify(:channel, '');

-- name: add_partial
-- One more piece of the text so far.
INSERT INTO partials (stream, number, turn, step, text, thinking, at)
VALUES (:stream, :number, :turn, :step, :text, :thinking, :at);

-- name: find_partial
-- The text so far of a stream, if all of its pieces are there.
SELECT MAX(turn) AS turn, MAX(step) AS step, string_agg(text, '' ORDER BY number) AS text,
    string_agg(thinking, '' ORDER BY number) AS thinking, MAX(at) AS at
FROM partials WHERE stream = :stream HAVING COUNT(*) > 0 AND COUNT(*) = MAX(number) + 1;

-- name: running_texts
-- Of sessions with a running turn: the first piece of the text so far, and those from a number on.
SELECT w.stream, s.version, p.number, p.turn, p.step, p.text, p.thinking, p.at
FROM unnest(:streams, :numbers) AS w(stream, number) JOIN sessions s ON s.id = substr(w.stream, 9)
LEFT JOIN partials p ON p.stream = w.stream AND (p.number = 0 OR p.number >= w.number)
WHERE s.turn_state = 'running' ORDER BY w.stream, p.number;

-- name: delete_partials_of_steps
-- The steps have their answers, or their partials became facts.
DELETE FROM partials p USING unnest(:streams, :turns, :steps) AS ended(stream, turn, step)
WHERE p.stream = ended.stream AND p.turn = ended.turn AND p.step = ended.step;
