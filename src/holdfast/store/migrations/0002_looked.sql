-- Since when a device has not looked through what happened.
ALTER TABLE devices ADD COLUMN looked_at INTEGER NOT NULL DEFAULT 0;
