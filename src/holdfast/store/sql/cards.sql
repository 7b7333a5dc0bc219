-- Boards, cards and runs.

-- name: list_boards
-- All of them.
SELECT * FROM boards ORDER BY created_at, id;

-- name: count_cards
-- How many are on each board. Not for the dispatcher: it would count all cards at every event.
SELECT board, COUNT(*) AS cards FROM cards WHERE status <> 'archived' GROUP BY board;

-- name: list_cards
-- The cards of a board in the order of its columns; an empty filter fits everything.
SELECT * FROM cards
WHERE (:board = '' OR board = :board) AND (:status = '' OR status = :status) AND (:profile = '' OR profile = :profile)
    AND (:archived OR status <> 'archived') AND (:text = '' OR has_text(:text, title, 'HF-' || number))
ORDER BY priority DESC, created_at, id LIMIT :limit OFFSET :offset;

-- name: cards_for_people
-- The inbox: cards that only a person can move, longest waiting first. Blocked, in review, or never started as they are:
-- for a profile that there is not, or behind a card that was archived before it was done.
SELECT c.* FROM cards c
WHERE c.board IN (SELECT id FROM boards WHERE NOT archived) AND (c.status IN ('blocked', 'review')
    OR (c.status IN ('todo', 'ready') AND (c.profile NOT IN :profiles OR EXISTS
        (SELECT 1 FROM card_links l JOIN cards p ON p.id = l.parent
        WHERE l.child = c.id AND p.status = 'archived' AND NOT p.done))))
ORDER BY c.moved_at, c.id;

-- name: get_card
-- One card.
SELECT * FROM cards WHERE id = :id;

-- name: get_card_by_number
-- One card by the number that people say.
SELECT * FROM cards WHERE number = :number AND number > 0;

-- name: find_cards
-- Ids by prefix.
SELECT id FROM cards WHERE id >= :prefix AND id < :beyond ORDER BY id LIMIT 10;

-- name: cards_to_promote
-- Whose time has come, and what waits for nothing any more.
SELECT id FROM cards c
WHERE status IN ('todo', 'scheduled') AND CASE status WHEN 'scheduled' THEN scheduled_at <= :now ELSE NOT EXISTS
    (SELECT 1 FROM card_links l JOIN cards p ON p.id = l.parent WHERE l.child = c.id AND NOT p.done) END
ORDER BY priority DESC, created_at, id;

-- name: cards_to_start
-- Ready, on boards and for profiles that have room, and nothing that is stored in a row blocks them.
SELECT id, board, profile FROM cards c
WHERE status = 'ready' AND assigned = '' AND board IN :boards
    AND profile IN :profiles AND id NOT IN :exclude
    AND (retry_at IS NULL OR retry_at <= :now OR moved_at > :now)
    AND NOT EXISTS (SELECT 1 FROM card_links l JOIN cards p ON p.id = l.parent WHERE l.child = c.id AND NOT p.done)
ORDER BY priority DESC, created_at, id LIMIT :limit;

-- name: assigned_cards
-- The cards that a node is to start.
SELECT id, board, profile, assigned AS node FROM cards WHERE assigned <> '' ORDER BY id;

-- name: cards_for_nodes
-- The cards that may wait for a node: they or their profiles ask for one, or an earlier run was on one.
SELECT * FROM cards WHERE status = 'ready' AND assigned = '' AND board IN (SELECT id FROM boards WHERE NOT archived)
    AND (node <> '' OR profile IN :profiles OR (:hosts AND host <> '')) ORDER BY moved_at, id LIMIT 500;

-- name: open_runs
-- Every open run with its card.
SELECT r.*, c.board FROM runs r JOIN cards c ON c.id = r.card WHERE r.finished_at IS NULL ORDER BY r.started_at, r.card;

-- name: open_run_of
-- The open run that works in a session.
SELECT * FROM runs WHERE session = :session AND finished_at IS NULL;

-- name: cards_of_sessions
-- The cards that these sessions work or worked on.
SELECT DISTINCT r.session, c.id AS card, c.number, COALESCE(NULLIF(b.title, ''), c.board) AS board
FROM runs r JOIN cards c ON c.id = r.card LEFT JOIN boards b ON b.id = c.board WHERE r.session IN :sessions;

-- name: list_runs
-- The runs of a card, in order, with what they cost.
SELECT r.*, COALESCE(SUM(t.input_tokens), 0) AS input_tokens, COALESCE(SUM(t.output_tokens), 0) AS output_tokens,
    SUM(t.cost) AS cost
FROM runs r LEFT JOIN turns t ON t.session = r.session AND t.turn > r.after_turn
    AND (r.until_turn IS NULL OR t.turn <= r.until_turn)
WHERE r.card = :card GROUP BY r.card, r.run ORDER BY r.run;

-- name: parents_of
-- What a card waits for.
SELECT c.* FROM card_links l JOIN cards c ON c.id = l.parent WHERE l.child = :card ORDER BY c.created_at, c.id;

-- name: children_of
-- What waits for a card.
SELECT c.* FROM card_links l JOIN cards c ON c.id = l.child WHERE l.parent = :card ORDER BY c.created_at, c.id;

-- name: all_links
-- The whole graph, to look for cycles.
SELECT parent, child FROM card_links;
