-- Which sessions an agent created, and for whom: the sessions that it descends from, the first one first.
ALTER TABLE sessions ADD COLUMN ancestors TEXT NOT NULL DEFAULT '[]';

-- The session that a card descends from, if an agent created it.
ALTER TABLE cards ADD COLUMN root TEXT NOT NULL DEFAULT '';
CREATE INDEX cards_by_root ON cards (root) WHERE root <> '';
