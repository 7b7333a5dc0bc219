-- Labels of nodes, and on which node a card runs.
ALTER TABLE nodes ADD COLUMN labels TEXT NOT NULL DEFAULT '';
ALTER TABLE cards ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE cards ADD COLUMN assigned TEXT NOT NULL DEFAULT '';
ALTER TABLE cards ADD COLUMN host TEXT NOT NULL DEFAULT '';
UPDATE cards SET host = COALESCE((SELECT r.node FROM runs r
    WHERE r.card = cards.id AND r.run = cards.run), '') WHERE run > 0;
CREATE INDEX cards_assigned ON cards (id) WHERE assigned <> '';
