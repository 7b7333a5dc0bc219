-- When a device last looked at a session, so that "while away" begins there.
ALTER TABLE cursors ADD COLUMN seen_at INTEGER NOT NULL DEFAULT 0;
