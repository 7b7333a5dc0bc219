-- All nodes have the same settings and the same key for push services, and know who looks at what on another one.
CREATE TABLE shared_settings (
    version BIGINT PRIMARY KEY CHECK (version > 0),
    text TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    changed_at BIGINT NOT NULL
);
CREATE TABLE shared_keys (
    name TEXT COLLATE "C" PRIMARY KEY,
    key BYTEA NOT NULL
);
CREATE UNLOGGED TABLE looks (
    stream TEXT COLLATE "C" PRIMARY KEY,
    at BIGINT NOT NULL
);
