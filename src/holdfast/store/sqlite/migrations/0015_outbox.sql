-- Who was told of what (notify/). Not a projection: a rebuild must not tell anything again.
CREATE TABLE deliveries (
    id TEXT PRIMARY KEY,
    destination TEXT NOT NULL,
    matter TEXT NOT NULL,
    kind TEXT NOT NULL,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    stream TEXT NOT NULL,
    title TEXT NOT NULL,
    summary TEXT NOT NULL,
    detail TEXT NOT NULL,
    link TEXT NOT NULL,
    when_absent INTEGER NOT NULL CHECK (when_absent IN (0, 1)),
    due_at INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending'
        CHECK (state IN ('pending', 'sending', 'sent', 'unsure', 'failed', 'dropped')),
    attempts INTEGER NOT NULL DEFAULT 0,
    changed_at INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    settled TEXT NOT NULL DEFAULT '',
    receipt TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX deliveries_due ON deliveries (due_at) WHERE state = 'pending';
CREATE INDEX deliveries_open ON deliveries (destination) WHERE state IN ('pending', 'sending');
CREATE INDEX deliveries_by_matter ON deliveries (matter, destination, seq);
CREATE INDEX deliveries_by_time ON deliveries (at, seq);
