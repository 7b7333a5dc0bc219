-- A notice can be answered where it is read: the wait that it tells of, and the answers that may be offered there.
ALTER TABLE deliveries ADD COLUMN wait TEXT NOT NULL DEFAULT '';
ALTER TABLE deliveries ADD COLUMN choices TEXT NOT NULL DEFAULT '[]';
