-- What a digest stands for, so that it can say what of it still waits, and so that a later one counts all of it.
ALTER TABLE deliveries ADD COLUMN collapsed_into TEXT NOT NULL DEFAULT '';
CREATE INDEX deliveries_collapsed ON deliveries (collapsed_into) WHERE collapsed_into <> '';
DROP INDEX deliveries_due;
CREATE INDEX deliveries_due ON deliveries (due_at, destination) WHERE state = 'pending';
-- SQLite used this index for no query, since none has its condition.
DROP INDEX deliveries_open;
CREATE INDEX deliveries_waiting ON deliveries (destination, seq, id) WHERE state = 'pending';
CREATE INDEX deliveries_interrupted ON deliveries (id) WHERE state = 'sending';
