-- As in PostgreSQL, where nodes renew their lives.
ALTER TABLE nodes ADD COLUMN started_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN heard_at INTEGER NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN draining INTEGER NOT NULL DEFAULT 0 CHECK (draining IN (0, 1));
