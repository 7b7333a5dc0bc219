-- The truth about the schema: a new database is made of it, and the migrations must reach exactly this
-- (tests/store/test_schema.py).

-- The log itself. `data` is the wire JSON, `crc` its checksum.
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    stream TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version > 0),
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    data BLOB NOT NULL,
    crc INTEGER NOT NULL,
    command_id TEXT,
    span INTEGER NOT NULL CHECK (span <= seq),
    UNIQUE (span, version)
);

-- Where the events of a stream are: sixteen versions each, from number 0, named by the seq of the first. No stream has
-- a span twice and no span a version twice. Whatever is busy now has its spans near the end of the index of `events`;
-- an index by stream would write a page for each stream in a commit. Measured with 16 and 64 old sessions at work together:
-- 20 to 40 % more pages and 8 to 13 % more processor time; with one, or with new ones, the same.
CREATE TABLE spans (
    stream TEXT NOT NULL,
    number INTEGER NOT NULL CHECK (number >= 0),
    span INTEGER NOT NULL,
    PRIMARY KEY (stream, number)
) WITHOUT ROWID;

-- One row per command that was accepted: a retry finds its answer here.
CREATE TABLE commands (
    id TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    seq INTEGER NOT NULL,
    stream TEXT NOT NULL,
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    reply TEXT NOT NULL DEFAULT '{}'
) WITHOUT ROWID;

-- Projection: one row per session. `failed_turn` is its last turn if that failed and no person has dealt with it, else 0.
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    profile TEXT NOT NULL,
    model TEXT NOT NULL DEFAULT '',
    cwd TEXT NOT NULL,
    parent TEXT NOT NULL DEFAULT '',
    task TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    archived INTEGER NOT NULL DEFAULT 0 CHECK (archived IN (0, 1)),
    message_count INTEGER NOT NULL DEFAULT 0,
    queued INTEGER NOT NULL DEFAULT 0 CHECK (queued >= 0),
    turn INTEGER NOT NULL DEFAULT 0,
    turn_state TEXT CHECK (turn_state IN ('running', 'waiting', 'suspended', 'done', 'failed', 'stopped')),
    preview TEXT NOT NULL DEFAULT '',
    pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    chapter INTEGER NOT NULL DEFAULT 1,
    chapter_at INTEGER NOT NULL DEFAULT 0,
    first_input_at INTEGER NOT NULL DEFAULT 0,
    last_active_at INTEGER NOT NULL DEFAULT 0,
    person_turn INTEGER NOT NULL DEFAULT 0,
    reset_policy TEXT NOT NULL DEFAULT '{}',
    ancestors TEXT NOT NULL DEFAULT '[]',
    failed_turn INTEGER NOT NULL DEFAULT 0,
    compaction_requested INTEGER NOT NULL DEFAULT 0 CHECK (compaction_requested IN (0, 1)),
    compaction_running INTEGER NOT NULL DEFAULT 0 CHECK (compaction_running IN (0, 1)),
    node TEXT NOT NULL DEFAULT 'local',
    chat TEXT NOT NULL DEFAULT '',
    tell TEXT NOT NULL DEFAULT 'default' CHECK (tell IN ('default', 'always', 'never'))
) WITHOUT ROWID;
CREATE INDEX sessions_in_order ON sessions (archived, pinned DESC, updated_at DESC, id);
-- "NOT archived", and so in the queries: for "archived = 0" SQLite takes the index above and reads every session.
CREATE INDEX sessions_begun ON sessions (id) WHERE first_input_at > 0 AND NOT archived;
CREATE INDEX sessions_with_policy ON sessions (id) WHERE first_input_at > 0 AND NOT archived AND reset_policy <> '{}';
CREATE INDEX sessions_failed ON sessions (id) WHERE failed_turn > 0;
CREATE INDEX sessions_of_chats ON sessions (chat) WHERE chat <> '';

-- Projection: one row per turn. The partial index is promise 2 as the database sees it.
CREATE TABLE turns (
    session TEXT NOT NULL,
    turn INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'suspended', 'done', 'failed', 'stopped')),
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    steps INTEGER NOT NULL DEFAULT 0,
    resumes INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cost REAL,
    reason TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (session, turn),
    CHECK ((finished_at IS NULL) = (state IN ('running', 'waiting', 'suspended')))
) WITHOUT ROWID;
CREATE UNIQUE INDEX turns_open ON turns (session) WHERE finished_at IS NULL;

-- Projection: one row per wait. `answer` and `answered_by` are set by the first answer only.
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
CREATE UNIQUE INDEX waits_open ON waits (session) WHERE state = 'open';

-- Projection: one row per task. What nobody can know is NULL.
CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('process', 'agent', 'card')),
    title TEXT NOT NULL,
    command TEXT NOT NULL,
    argv TEXT NOT NULL,
    cwd TEXT NOT NULL,
    started_by TEXT NOT NULL,
    session TEXT NOT NULL,
    call TEXT NOT NULL,
    worker TEXT NOT NULL,
    foreground INTEGER NOT NULL CHECK (foreground IN (0, 1)),
    lifetime TEXT NOT NULL CHECK (lifetime IN ('chapter', 'session', 'persist', 'until')),
    until INTEGER,
    notify INTEGER NOT NULL CHECK (notify IN (0, 1)),
    state TEXT NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'done', 'failed', 'stopped', 'lost')),
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    version INTEGER NOT NULL,
    pid INTEGER,
    exit_code INTEGER,
    signal TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    evidence TEXT NOT NULL DEFAULT '',
    stop_by TEXT NOT NULL DEFAULT '',
    stop_reason TEXT NOT NULL DEFAULT '',
    output_bytes INTEGER NOT NULL DEFAULT 0,
    dropped_bytes INTEGER NOT NULL DEFAULT 0,
    preview TEXT NOT NULL DEFAULT '',
    summary TEXT NOT NULL DEFAULT '',
    files TEXT,
    survivors TEXT NOT NULL DEFAULT '[]',
    pinned INTEGER NOT NULL DEFAULT 0 CHECK (pinned IN (0, 1)),
    left_by TEXT NOT NULL DEFAULT '',
    node TEXT NOT NULL DEFAULT 'local',
    tell TEXT NOT NULL DEFAULT 'default' CHECK (tell IN ('default', 'always', 'never')),
    CHECK ((finished_at IS NULL) = (state = 'running')),
    CHECK ((until IS NOT NULL) = (lifetime = 'until'))
);
CREATE INDEX tasks_by_start ON tasks (foreground, started_at DESC, id);
CREATE INDEX tasks_by_session ON tasks (session, started_at DESC);
CREATE INDEX tasks_running ON tasks (id) WHERE state = 'running';

-- Projection: where the finished texts of the agent stand, to count what somebody has not read.
CREATE TABLE answers (
    session TEXT NOT NULL,
    version INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (session, version)
) WITHOUT ROWID;

-- Projection: streams that were deleted on request; their cursors answer 410.
CREATE TABLE deleted (
    stream TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;

-- Not in the log: one row per life of a node, which is a process that has the store open, from its start to its end.
-- `expires_at` is for engines with several nodes: a life that is not renewed ends then. SQLite has one node and no timer.
CREATE TABLE nodes (
    life INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    url TEXT NOT NULL DEFAULT '',
    version TEXT NOT NULL,
    expires_at INTEGER,
    ended_at INTEGER,
    ended_reason TEXT NOT NULL DEFAULT '',
    started_at INTEGER NOT NULL DEFAULT 0,
    heard_at INTEGER NOT NULL DEFAULT 0,
    draining INTEGER NOT NULL DEFAULT 0 CHECK (draining IN (0, 1)),
    labels TEXT NOT NULL DEFAULT '', -- with commas between them
    CHECK ((ended_at IS NULL) = (ended_reason = ''))
);
CREATE UNIQUE INDEX nodes_alive ON nodes (name) WHERE ended_at IS NULL;

-- Not in the log: who may write what is done (a lease whose life has ended is free), and the text so far of a running
-- step.
CREATE TABLE leases (
    stream TEXT PRIMARY KEY,
    token INTEGER NOT NULL,
    holder TEXT NOT NULL,
    life INTEGER NOT NULL REFERENCES nodes (life) ON DELETE CASCADE
) WITHOUT ROWID;
CREATE INDEX leases_by_life ON leases (life);
CREATE TABLE partials (
    stream TEXT PRIMARY KEY,
    turn INTEGER NOT NULL,
    step INTEGER NOT NULL,
    text TEXT NOT NULL,
    thinking TEXT NOT NULL,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE counters (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO counters (name, value) VALUES ('fence', 0);

-- Not in the log: who may look in from a browser, and how far each has read. Of secrets only the hash is kept.
CREATE TABLE codes (
    hash TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    device TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE devices (
    id TEXT PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    seen_at INTEGER NOT NULL,
    last_session TEXT NOT NULL DEFAULT '',
    reviewed_at INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE cursors (
    device TEXT NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
    session TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 0),
    seen_at INTEGER NOT NULL DEFAULT 0, -- when it was last looked at; 0 for before that was kept
    PRIMARY KEY (device, session)
) WITHOUT ROWID;
-- Where the browser of a device takes pushes, and what it is told (notify/push.py). `ended` says why it takes none.
CREATE TABLE push_subscriptions (
    device TEXT PRIMARY KEY REFERENCES devices (id) ON DELETE CASCADE,
    endpoint TEXT NOT NULL,
    p256dh TEXT NOT NULL,
    auth TEXT NOT NULL,
    kinds TEXT NOT NULL,
    when_absent INTEGER NOT NULL CHECK (when_absent IN (0, 1)),
    details INTEGER NOT NULL CHECK (details IN (0, 1)),
    changed_at INTEGER NOT NULL,
    ended TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE UNIQUE INDEX push_endpoints ON push_subscriptions (endpoint) WHERE ended = '';

-- Not in the log, and no projection, since a rebuild must not tell anything again: who was told of what (notify/).
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
    receipt TEXT NOT NULL DEFAULT '',
    wait TEXT NOT NULL DEFAULT '',
    choices TEXT NOT NULL DEFAULT '[]',
    collapsed_into TEXT NOT NULL DEFAULT '' -- the delivery that took its place and that of others
) WITHOUT ROWID;
CREATE INDEX deliveries_due ON deliveries (due_at, destination) WHERE state = 'pending';
CREATE INDEX deliveries_waiting ON deliveries (destination, seq, id) WHERE state = 'pending';
CREATE INDEX deliveries_interrupted ON deliveries (id) WHERE state = 'sending';
CREATE INDEX deliveries_collapsed ON deliveries (collapsed_into) WHERE collapsed_into <> '';
CREATE INDEX deliveries_by_matter ON deliveries (matter, destination, seq);
CREATE INDEX deliveries_by_time ON deliveries (at, seq);

-- Projection: one row per board.
CREATE TABLE boards (
    id TEXT PRIMARY KEY,
    title TEXT NOT NULL,
    paused_by TEXT NOT NULL DEFAULT '',
    archived INTEGER NOT NULL DEFAULT 0 CHECK (archived IN (0, 1)),
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL
) WITHOUT ROWID;

-- Projection: one row per card, as much as a board shows of it.
CREATE TABLE cards (
    id TEXT PRIMARY KEY,
    board TEXT NOT NULL,
    title TEXT NOT NULL,
    profile TEXT NOT NULL,
    workspace TEXT NOT NULL,
    priority INTEGER NOT NULL,
    status TEXT NOT NULL CHECK (status IN
        ('triage', 'todo', 'scheduled', 'ready', 'running', 'blocked', 'review', 'done', 'archived')),
    done INTEGER NOT NULL DEFAULT 0 CHECK (done IN (0, 1)), -- also once it is archived: nobody waits for it any more
    reason TEXT NOT NULL DEFAULT '',
    block_kind TEXT NOT NULL DEFAULT '',
    scheduled_at INTEGER,
    retry_at INTEGER,
    run INTEGER NOT NULL DEFAULT 0,
    session TEXT NOT NULL DEFAULT '',
    comments INTEGER NOT NULL DEFAULT 0,
    warning TEXT NOT NULL DEFAULT '',
    created_by TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    moved_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    root TEXT NOT NULL DEFAULT '',
    number INTEGER NOT NULL DEFAULT 0, -- the number that people say (HF-118), from its CardCreated
    tell TEXT NOT NULL DEFAULT 'default' CHECK (tell IN ('default', 'always', 'never')),
    node TEXT NOT NULL DEFAULT '', -- the name or label that it asks for
    assigned TEXT NOT NULL DEFAULT '', -- the node that is to start its next run
    host TEXT NOT NULL DEFAULT '' -- the node of its last run
) WITHOUT ROWID;
CREATE UNIQUE INDEX cards_by_number ON cards (number) WHERE number > 0;
CREATE INDEX cards_by_root ON cards (root) WHERE root <> '';
CREATE INDEX cards_in_order ON cards (board, status, priority DESC, created_at, id);
CREATE INDEX cards_to_promote ON cards (priority DESC, created_at, id) WHERE status IN ('todo', 'scheduled');
CREATE INDEX cards_to_start ON cards (priority DESC, created_at, id) WHERE status = 'ready';
CREATE INDEX cards_assigned ON cards (id) WHERE assigned <> '';

-- Projection: which card waits for which.
CREATE TABLE card_links (
    parent TEXT NOT NULL,
    child TEXT NOT NULL,
    PRIMARY KEY (parent, child)
) WITHOUT ROWID;
CREATE INDEX card_links_by_child ON card_links (child, parent);

-- Projection: one row per run. The partial index is promise 2 as the database sees it.
CREATE TABLE runs (
    card TEXT NOT NULL,
    run INTEGER NOT NULL,
    session TEXT NOT NULL,
    task TEXT NOT NULL,
    profile TEXT NOT NULL,
    resumes INTEGER NOT NULL,
    fresh_because TEXT NOT NULL,
    workspace TEXT NOT NULL,
    after_turn INTEGER NOT NULL,
    until_turn INTEGER,
    outcome TEXT NOT NULL DEFAULT 'running'
        CHECK (outcome IN ('running', 'done', 'blocked', 'failed', 'stopped', 'lost')),
    failure TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    counts INTEGER NOT NULL DEFAULT 0,
    note TEXT NOT NULL DEFAULT '',
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    node TEXT NOT NULL DEFAULT 'local',
    PRIMARY KEY (card, run)
) WITHOUT ROWID;
CREATE UNIQUE INDEX runs_open ON runs (card) WHERE finished_at IS NULL;
CREATE UNIQUE INDEX runs_open_session ON runs (session) WHERE finished_at IS NULL;
CREATE INDEX runs_by_session ON runs (session);
