-- A node renews its life by the clock of the database; who does not is lost, and its leases are free.
ALTER TABLE nodes ADD COLUMN started_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN heard_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN draining BOOLEAN NOT NULL DEFAULT FALSE;
