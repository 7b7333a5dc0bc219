-- The outbox: deliveries of notices (notify/), and how far the log was looked through for them.

-- name: outbox_position
-- How far the log was looked through; no row before the first destination was set up.
SELECT value FROM counters WHERE name = 'outbox_position';

-- name: set_outbox_position
-- It was looked through up to here.
INSERT INTO counters (name, value) VALUES ('outbox_position', :position)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: interrupted_deliveries
-- What is being sent; at a start, what a gateway was sending when it ended.
SELECT * FROM deliveries WHERE state = 'sending' ORDER BY seq, id;

-- name: add_delivery
-- Something to tell; what was planned before is not planned again.
INSERT INTO deliveries (id, destination, matter, kind, seq, at, stream, title, summary, detail, link, when_absent,
    due_at, changed_at, wait, choices)
VALUES (:id, :destination, :matter, :kind, :seq, :at, :stream, :title, :summary, :detail, :link, :when_absent,
    :due_at, :at, :wait, :choices)
ON CONFLICT (id) DO NOTHING;

-- name: replace_older_deliveries
-- A newer notice about the same matter takes their place.
UPDATE deliveries SET state = 'dropped', changed_at = :at, error = 'replaced by a newer notice'
WHERE matter = :matter AND destination = :destination AND seq < :seq AND state = 'pending';

-- name: settle_deliveries
-- Its matter needs nobody any longer: what was not sent is dropped.
UPDATE deliveries SET settled = :how, changed_at = :at,
    error = CASE WHEN state = 'pending' THEN 'settled before it was sent: ' || :how ELSE error END,
    state = CASE WHEN state = 'pending' THEN 'dropped' ELSE state END
WHERE matter = :matter AND seq < :seq AND settled = '' AND kind <> 'settled'
RETURNING *;

-- name: mark_delivery
-- What became of it; with a settled matter it is not tried again.
UPDATE deliveries SET attempts = :attempts, due_at = :due_at, changed_at = :changed_at, receipt = :receipt,
    state = CASE WHEN :state = 'pending' AND settled <> '' THEN 'dropped' ELSE :state END,
    error = CASE WHEN :state = 'pending' AND settled <> '' THEN 'settled before it was sent: ' || settled ELSE :error END
WHERE id = :id;

-- name: collapse_deliveries
-- One notice takes the place of many.
UPDATE deliveries SET state = 'dropped', changed_at = :at, error = :reason, collapsed_into = :id
WHERE destination = :destination AND state = 'pending' AND seq <= :seq AND kind <> 'settled';

-- name: collapse_further
-- What a digest stood for that was not sent either.
UPDATE deliveries SET collapsed_into = :id
WHERE collapsed_into <> '' AND collapsed_into IN
    (SELECT id FROM deliveries WHERE collapsed_into = :id AND collapsed_into <> '' AND kind = 'digest');

-- name: prune_deliveries
-- Those that ended long ago.
DELETE FROM deliveries WHERE at < :before AND state NOT IN ('pending', 'sending');

-- name: due_destinations
-- Where something is to be sent: its time has come, or is too far ahead, since a clock that was wrong set it.
SELECT DISTINCT destination FROM deliveries WHERE state = 'pending' AND (due_at <= :at OR due_at > :horizon)
ORDER BY destination;

-- name: next_due_delivery
-- When something is due again.
SELECT MIN(due_at) AS due_at FROM deliveries WHERE state = 'pending' AND due_at > :after;

-- name: pending_deliveries
-- What waits for one destination, oldest first.
SELECT * FROM deliveries WHERE destination = :destination AND state = 'pending' ORDER BY seq, id;

-- name: count_pending_deliveries
-- How much waits for some destinations, by the beginning of their names.
SELECT COUNT(*) AS pending FROM deliveries
WHERE state IN ('pending', 'sending') AND substr(destination, 1, length(:prefix)) = :prefix;

-- name: first_due_delivery
-- The first one of a destination whose time has come.
SELECT * FROM deliveries WHERE destination = :destination AND state = 'pending' AND (due_at <= :at OR due_at > :horizon)
ORDER BY seq, id LIMIT 1;

-- name: backlog_of_destination
-- The first notices that wait for a destination.
SELECT * FROM deliveries WHERE destination = :destination AND state = 'pending' AND kind <> 'settled'
ORDER BY seq, id LIMIT :limit;

-- name: collapsed_deliveries
-- The notices whose place a delivery took.
SELECT * FROM deliveries WHERE collapsed_into = :id AND collapsed_into <> '' AND kind <> 'digest' ORDER BY seq, id;

-- name: last_sent_delivery
-- The last one about a matter that reached a destination, or may have.
SELECT * FROM deliveries WHERE matter = :matter AND destination = :destination AND state IN ('sent', 'unsure')
    AND kind <> 'settled' ORDER BY seq DESC LIMIT 1;

-- name: copies_of_delivery
-- The other messages that asked for the same answer in the same place: a list of what waits shows it again.
SELECT * FROM deliveries WHERE matter = :matter AND destination = :destination AND wait = :wait AND id <> :id
    AND state = 'sent' AND receipt <> '' AND kind <> 'settled' ORDER BY seq, id;

-- name: list_deliveries
-- The latest ones, newest first.
SELECT * FROM deliveries WHERE (:destination = '' OR destination = :destination)
ORDER BY at DESC, seq DESC, id LIMIT :limit;

-- name: summarize_deliveries
-- How each destination is doing.
SELECT destination, MAX(CASE WHEN state = 'sent' THEN changed_at END) AS sent_at,
    COUNT(CASE WHEN state = 'failed' THEN 1 END) AS failed
FROM deliveries GROUP BY destination;
