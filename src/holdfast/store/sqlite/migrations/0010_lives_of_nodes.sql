-- A lease belongs to the life of a node. Whoever opens the store begins a new life, so no lease is taken over.
CREATE TABLE nodes (
    life INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    url TEXT NOT NULL DEFAULT '',
    version TEXT NOT NULL,
    expires_at INTEGER,
    ended_at INTEGER,
    ended_reason TEXT NOT NULL DEFAULT '',
    CHECK ((ended_at IS NULL) = (ended_reason = ''))
);
CREATE UNIQUE INDEX nodes_alive ON nodes (name) WHERE ended_at IS NULL;
DROP TABLE leases;
CREATE TABLE leases (
    stream TEXT PRIMARY KEY,
    token INTEGER NOT NULL,
    holder TEXT NOT NULL,
    life INTEGER NOT NULL REFERENCES nodes (life) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX leases_by_life ON leases (life);

-- Columns and a table are called what their fields are called.
ALTER TABLE cards RENAME COLUMN again_at TO retry_at;
ALTER TABLE devices RENAME COLUMN looked_at TO reviewed_at;
CREATE TABLE answers (
    session TEXT NOT NULL,
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (session, version)
) WITHOUT ROWID;
INSERT INTO answers SELECT session, version, at FROM spoken;
DROP TABLE spoken;
