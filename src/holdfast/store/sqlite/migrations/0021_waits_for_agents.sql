-- External agents wait for a log-in and for their quota, too. SQLite cannot change a condition of a table.
ALTER TABLE waits RENAME TO old_waits;
DROP INDEX waits_open;
CREATE TABLE waits (
    id TEXT PRIMARY KEY,
    session TEXT NOT NULL,
    turn INTEGER NOT NULL,
    version INTEGER NOT NULL,
    purpose TEXT NOT NULL CHECK (
        purpose IN ('resume', 'question', 'approval', 'retry', 'compaction', 'login', 'quota')
    ),
    reason TEXT NOT NULL,
    call TEXT NOT NULL,
    choices TEXT NOT NULL,
    pattern TEXT NOT NULL,
    until INTEGER,
    opened_at INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'answered', 'closed')),
    answer TEXT,
    answered_by TEXT,
    ended_at INTEGER,
    shown TEXT NOT NULL DEFAULT '[]', -- every argument of a call that waits for an approval
    CHECK ((ended_at IS NULL) = (state = 'open')),
    CHECK ((answer IS NULL) = (state <> 'answered'))
) WITHOUT ROWID;
INSERT INTO waits
SELECT
    id, session, turn, version, purpose, reason, call, choices, pattern, until, opened_at, state, answer, answered_by,
    ended_at, shown
FROM old_waits;
DROP TABLE old_waits;
CREATE UNIQUE INDEX waits_open ON waits (session) WHERE state = 'open';
