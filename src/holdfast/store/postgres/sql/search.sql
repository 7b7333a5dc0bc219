-- The search: texts by their trigrams. A query of fewer than three characters looks through the newest ones.

-- name: find_by_trigrams
-- Where a text occurs, newest first: the index narrows it down, the text decides.
SELECT session, version, at, role, text, task FROM texts
WHERE trigrams @> :trigrams AND strpos(folded, :folded) > 0
    AND CASE WHEN :outputs THEN task <> '' ELSE role <> 'output' END
ORDER BY seq DESC LIMIT :limit;

-- name: find_by_scan
-- The same for a short text.
SELECT session, version, at, role, text, task FROM (
    SELECT * FROM texts WHERE CASE WHEN :outputs THEN task <> '' ELSE role <> 'output' END ORDER BY seq DESC LIMIT :scan
) newest WHERE strpos(folded, :folded) > 0 ORDER BY seq DESC LIMIT :limit;

-- name: indexed
-- Up to which seq the log can be searched.
SELECT value FROM counters WHERE name = 'indexed';

-- name: set_indexed
-- It was looked through up to here.
UPDATE counters SET value = :seq WHERE name = 'indexed';

-- name: lines_to_index
-- What comes next in the log.
SELECT data, crc, seq FROM (
    SELECT data, crc, seq, SUM(octet_length(data)) OVER (ORDER BY seq) - octet_length(data) AS before
    FROM (SELECT data, crc, seq FROM events WHERE seq > :after ORDER BY seq LIMIT :limit) next_ones
) page WHERE before < :size ORDER BY seq;

-- name: add_text
-- It can be found from now on.
INSERT INTO texts (seq, session, version, at, role, text, task, folded, trigrams)
VALUES (:seq, :session, :version, :at, :role, :text, :task, :folded, :trigrams)
ON CONFLICT (seq) DO NOTHING;

-- name: add_inputs
-- Which text is the message with an id.
INSERT INTO inputs (session, input, seq) SELECT * FROM unnest(:sessions, :inputs, :seqs)
ON CONFLICT (session, input) DO UPDATE SET seq = excluded.seq;

-- name: find_input
-- The text of a message, and its version.
SELECT i.seq, t.version FROM inputs i JOIN texts t ON t.seq = i.seq WHERE i.session = :session AND i.input = :input;

-- name: move_input
-- A message was edited: its text is another one now, at the place of the first.
UPDATE inputs SET seq = :seq WHERE session = :session AND input = :input;

-- name: move_text
-- The same.
UPDATE texts SET version = :version WHERE seq = :seq;

-- name: drop_text
-- It is no longer found.
DELETE FROM texts WHERE seq = :seq;

-- name: drop_texts
-- Nothing of a session, or of the output of a task, is found any longer.
DELETE FROM texts WHERE session = :session;

-- name: drop_inputs
-- Gone with their session.
DELETE FROM inputs WHERE session = :session;

-- name: drop_repeated_output
-- The output of a task is the result of the call that waited for it.
DELETE FROM texts WHERE session = :session AND strpos(:output, text) > 0;

-- name: forget_task
-- It was pruned: what a turn got of it is found in the conversation only.
UPDATE texts SET task = '' WHERE task = :task;
