-- The truth about the schema; the migrations must reach exactly this (tests/store/test_postgres_schema.py).
-- It is that of SQLite (sqlite/schema.sql says more about each table) in the words of PostgreSQL, and where it differs the
-- reason stands beside it. Ids and names of streams are compared byte by byte, whatever the language of the database.

-- Which migrations were run, and the oldest version of the schema whose programs can still work with it.
CREATE TABLE schema_version (
    version BIGINT NOT NULL DEFAULT 0,
    usable_from BIGINT NOT NULL DEFAULT 1
);
INSERT INTO schema_version DEFAULT VALUES;

-- The log itself. `data` is the wire JSON, `crc` its checksum.
CREATE TABLE events (
    seq BIGINT PRIMARY KEY,
    stream TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL CHECK (version > 0),
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    data BYTEA NOT NULL,
    crc BIGINT NOT NULL,
    command_id TEXT,
    span BIGINT NOT NULL CHECK (span <= seq),
    UNIQUE (span, version)
);

-- Where the events of a stream are: sixteen versions each, from number 0, named by the seq of the first.
CREATE TABLE spans (
    stream TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL CHECK (number >= 0),
    span BIGINT NOT NULL,
    PRIMARY KEY (stream, number)
);

-- One row per command that was accepted: a retry finds its answer here.
CREATE TABLE commands (
    id TEXT COLLATE "C" PRIMARY KEY,
    digest TEXT NOT NULL,
    seq BIGINT NOT NULL,
    stream TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    at BIGINT NOT NULL,
    reply TEXT NOT NULL DEFAULT '{}'
);

-- Projection: one row per session. `failed_turn` is its last turn if that failed and no person has dealt with it, else 0.
CREATE TABLE sessions (
    id TEXT COLLATE "C" PRIMARY KEY,
    title TEXT NOT NULL,
    profile TEXT NOT NULL,
    model TEXT NOT NULL DEFAULT '',
    cwd TEXT NOT NULL,
    parent TEXT COLLATE "C" NOT NULL DEFAULT '',
    task TEXT COLLATE "C" NOT NULL DEFAULT '',
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    archived BOOLEAN NOT NULL DEFAULT FALSE,
    message_count BIGINT NOT NULL DEFAULT 0,
    queued BIGINT NOT NULL DEFAULT 0 CHECK (queued >= 0),
    turn BIGINT NOT NULL DEFAULT 0,
    turn_state TEXT CHECK (turn_state IN ('running', 'waiting', 'suspended', 'done', 'failed', 'stopped')),
    preview TEXT NOT NULL DEFAULT '',
    pinned BOOLEAN NOT NULL DEFAULT FALSE,
    chapter BIGINT NOT NULL DEFAULT 1,
    chapter_at BIGINT NOT NULL DEFAULT 0,
    first_input_at BIGINT NOT NULL DEFAULT 0,
    last_active_at BIGINT NOT NULL DEFAULT 0,
    person_turn BIGINT NOT NULL DEFAULT 0,
    reset_policy TEXT NOT NULL DEFAULT '{}',
    ancestors TEXT NOT NULL DEFAULT '[]',
    failed_turn BIGINT NOT NULL DEFAULT 0,
    compaction_requested BOOLEAN NOT NULL DEFAULT FALSE,
    compaction_running BOOLEAN NOT NULL DEFAULT FALSE,
    node TEXT NOT NULL DEFAULT 'local',
    chat TEXT COLLATE "C" NOT NULL DEFAULT '',
    tell TEXT NOT NULL DEFAULT 'default' CHECK (tell IN ('default', 'always', 'never'))
);
CREATE INDEX sessions_in_order ON sessions (archived, pinned DESC, updated_at DESC, id);
CREATE INDEX sessions_begun ON sessions (id) WHERE first_input_at > 0 AND NOT archived;
CREATE INDEX sessions_with_policy ON sessions (id) WHERE first_input_at > 0 AND NOT archived AND reset_policy <> '{}';
CREATE INDEX sessions_failed ON sessions (id) WHERE failed_turn > 0;
CREATE INDEX sessions_of_chats ON sessions (chat) WHERE chat <> '';
CREATE INDEX sessions_unfinished ON sessions (id) WHERE queued > 0 OR compaction_requested OR compaction_running
    OR turn_state IN ('running', 'waiting', 'suspended');

-- Projection: one row per turn. The partial index is promise 2 as the database sees it.
CREATE TABLE turns (
    session TEXT COLLATE "C" NOT NULL,
    turn BIGINT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'waiting', 'suspended', 'done', 'failed', 'stopped')),
    started_at BIGINT NOT NULL,
    finished_at BIGINT,
    steps BIGINT NOT NULL DEFAULT 0,
    resumes BIGINT NOT NULL DEFAULT 0,
    input_tokens BIGINT NOT NULL DEFAULT 0,
    output_tokens BIGINT NOT NULL DEFAULT 0,
    cost DOUBLE PRECISION,
    reason TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (session, turn),
    CHECK ((finished_at IS NULL) = (state IN ('running', 'waiting', 'suspended')))
);
CREATE UNIQUE INDEX turns_open ON turns (session) WHERE finished_at IS NULL;
CREATE INDEX turns_by_end ON turns (finished_at) WHERE finished_at IS NOT NULL;

-- Projection: one row per wait. `answer` and `answered_by` are set by the first answer only.
CREATE TABLE waits (
    id TEXT COLLATE "C" PRIMARY KEY,
    session TEXT COLLATE "C" NOT NULL,
    turn BIGINT NOT NULL,
    version BIGINT NOT NULL,
    purpose TEXT NOT NULL CHECK (
        purpose IN ('resume', 'question', 'approval', 'retry', 'compaction', 'login', 'quota')
    ),
    reason TEXT NOT NULL,
    call TEXT NOT NULL,
    choices TEXT NOT NULL,
    pattern TEXT NOT NULL,
    until BIGINT,
    opened_at BIGINT NOT NULL,
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'answered', 'closed')),
    answer TEXT,
    answered_by TEXT,
    ended_at BIGINT,
    shown TEXT NOT NULL DEFAULT '[]', -- every argument of a call that waits for an approval
    CHECK ((ended_at IS NULL) = (state = 'open')),
    CHECK ((answer IS NULL) = (state <> 'answered'))
);
CREATE UNIQUE INDEX waits_open ON waits (session) WHERE state = 'open';
CREATE INDEX waits_by_time ON waits (opened_at);

-- Projection: one row per task. What nobody can know is NULL.
CREATE TABLE tasks (
    id TEXT COLLATE "C" PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('process', 'agent', 'card')),
    title TEXT NOT NULL,
    command TEXT NOT NULL,
    argv TEXT NOT NULL,
    cwd TEXT NOT NULL,
    started_by TEXT NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    call TEXT NOT NULL,
    worker TEXT COLLATE "C" NOT NULL,
    foreground BOOLEAN NOT NULL,
    lifetime TEXT NOT NULL CHECK (lifetime IN ('chapter', 'session', 'persist', 'until')),
    until BIGINT,
    notify BOOLEAN NOT NULL,
    state TEXT NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'done', 'failed', 'stopped', 'lost')),
    started_at BIGINT NOT NULL,
    finished_at BIGINT,
    version BIGINT NOT NULL,
    pid BIGINT,
    exit_code BIGINT,
    signal TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    evidence TEXT NOT NULL DEFAULT '',
    stop_by TEXT NOT NULL DEFAULT '',
    stop_reason TEXT NOT NULL DEFAULT '',
    output_bytes BIGINT NOT NULL DEFAULT 0,
    dropped_bytes BIGINT NOT NULL DEFAULT 0,
    preview TEXT NOT NULL DEFAULT '',
    summary TEXT NOT NULL DEFAULT '',
    files TEXT,
    survivors TEXT NOT NULL DEFAULT '[]',
    pinned BOOLEAN NOT NULL DEFAULT FALSE,
    left_by TEXT NOT NULL DEFAULT '',
    node TEXT NOT NULL DEFAULT 'local',
    tell TEXT NOT NULL DEFAULT 'default' CHECK (tell IN ('default', 'always', 'never')),
    CHECK ((finished_at IS NULL) = (state = 'running')),
    CHECK ((until IS NOT NULL) = (lifetime = 'until'))
);
CREATE INDEX tasks_by_start ON tasks (foreground, started_at DESC, id);
CREATE INDEX tasks_by_session ON tasks (session, started_at DESC);
CREATE INDEX tasks_running ON tasks (id) WHERE state = 'running';
CREATE INDEX tasks_by_end ON tasks (finished_at) WHERE finished_at IS NOT NULL AND NOT foreground;

-- Projection: where the finished texts of the agent stand, to count what somebody has not read.
CREATE TABLE answers (
    session TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (session, version)
);

-- Projection: streams that were deleted on request; their cursors answer 410.
CREATE TABLE deleted (
    stream TEXT COLLATE "C" PRIMARY KEY,
    at BIGINT NOT NULL
);

-- Not in the log: one row per life of a node, which is a process that has the store open, from its start to its end. A
-- name has at most one life that has not ended.
CREATE TABLE nodes (
    life BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL,
    url TEXT NOT NULL DEFAULT '',
    version TEXT NOT NULL,
    expires_at BIGINT,
    ended_at BIGINT,
    ended_reason TEXT NOT NULL DEFAULT '',
    started_at BIGINT NOT NULL DEFAULT 0,
    heard_at BIGINT NOT NULL DEFAULT 0,
    draining BOOLEAN NOT NULL DEFAULT FALSE,
    labels TEXT NOT NULL DEFAULT '', -- with commas between them
    CHECK ((ended_at IS NULL) = (ended_reason = ''))
);
CREATE UNIQUE INDEX nodes_alive ON nodes (name) WHERE ended_at IS NULL;

-- Not in the log: who may write what is done. A lease whose life has ended is free.
CREATE TABLE leases (
    stream TEXT COLLATE "C" PRIMARY KEY,
    token BIGINT NOT NULL,
    holder TEXT NOT NULL,
    life BIGINT NOT NULL REFERENCES nodes (life) ON DELETE CASCADE
);
CREATE INDEX leases_by_life ON leases (life);

-- Not in the log: the text so far of a running step, in pieces as it grew, from number 0. To overwrite one row would write a
-- long text again and again. Unlogged: a crash of the server empties it, and then the step is asked again from its beginning.
CREATE UNLOGGED TABLE partials (
    stream TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    turn BIGINT NOT NULL,
    step BIGINT NOT NULL,
    text TEXT NOT NULL,
    thinking TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (stream, number)
);

-- Not in the log: what nodes ask each other about the commands that run there, and the answers. Unlogged: after a crash of
-- the server nobody gets an answer, and whoever asked is told so. A request that was not taken in time is not taken later.
CREATE UNLOGGED TABLE node_requests (
    id TEXT COLLATE "C" PRIMARY KEY,
    node TEXT COLLATE "C" NOT NULL,
    asked_by TEXT COLLATE "C" NOT NULL,
    body BYTEA NOT NULL,
    expires_at BIGINT NOT NULL,
    taken BOOLEAN NOT NULL DEFAULT FALSE,
    answer BYTEA
);
CREATE INDEX node_requests_open ON node_requests (node) WHERE NOT taken;
CREATE INDEX node_requests_answered ON node_requests (asked_by) WHERE answer IS NOT NULL;

-- Not in the log: the outputs of commands that ended, as much as is kept of them, for the other nodes. What lies between
-- two pieces was dropped.
CREATE TABLE output_copies (
    task TEXT COLLATE "C" NOT NULL,
    start BIGINT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (task, start)
);

-- Not in the log: the settings of all nodes, one row per version; the newest is in force (store/settings_store.py).
CREATE TABLE shared_settings (
    version BIGINT PRIMARY KEY CHECK (version > 0),
    text TEXT NOT NULL,
    changed_by TEXT NOT NULL,
    changed_at BIGINT NOT NULL
);

-- Not in the log: keys that all nodes must have in common, such as the one for push services.
CREATE TABLE shared_keys (
    name TEXT COLLATE "C" PRIMARY KEY,
    key BYTEA NOT NULL
);

-- Not in the log: when somebody last looked at a stream, by the clock of the server, for the node that notifies people.
CREATE UNLOGGED TABLE looks (
    stream TEXT COLLATE "C" PRIMARY KEY,
    at BIGINT NOT NULL
);

-- Numbers by name: the last fencing token, how far the log was looked through for the outbox and for the search.
CREATE TABLE counters (
    name TEXT COLLATE "C" PRIMARY KEY,
    value BIGINT NOT NULL
);
INSERT INTO counters (name, value) VALUES ('fence', 0), ('indexed', 0);

-- Not in the log: who may look in from a browser, and how far each has read. Of secrets only the hash is kept.
CREATE TABLE codes (
    hash TEXT COLLATE "C" PRIMARY KEY,
    expires_at BIGINT NOT NULL,
    device TEXT COLLATE "C" NOT NULL
);
CREATE TABLE devices (
    id TEXT COLLATE "C" PRIMARY KEY,
    hash TEXT COLLATE "C" NOT NULL UNIQUE,
    name TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    seen_at BIGINT NOT NULL,
    last_session TEXT NOT NULL DEFAULT '',
    reviewed_at BIGINT NOT NULL DEFAULT 0
);
CREATE TABLE cursors (
    device TEXT COLLATE "C" NOT NULL REFERENCES devices (id) ON DELETE CASCADE,
    session TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL CHECK (version >= 0),
    seen_at BIGINT NOT NULL DEFAULT 0, -- when it was last looked at; 0 for before that was kept
    PRIMARY KEY (device, session)
);
-- Where the browser of a device takes pushes, and what it is told (notify/push.py). `ended` says why it takes none.
CREATE TABLE push_subscriptions (
    device TEXT COLLATE "C" PRIMARY KEY REFERENCES devices (id) ON DELETE CASCADE,
    endpoint TEXT NOT NULL,
    p256dh TEXT NOT NULL,
    auth TEXT NOT NULL,
    kinds TEXT NOT NULL,
    when_absent BOOLEAN NOT NULL,
    details BOOLEAN NOT NULL,
    changed_at BIGINT NOT NULL,
    ended TEXT NOT NULL DEFAULT ''
);
CREATE UNIQUE INDEX push_endpoints ON push_subscriptions (endpoint) WHERE ended = '';

-- Not in the log, and no projection, since a rebuild must not tell anything again: who was told of what (notify/).
CREATE TABLE deliveries (
    id TEXT COLLATE "C" PRIMARY KEY,
    destination TEXT COLLATE "C" NOT NULL,
    matter TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    stream TEXT COLLATE "C" NOT NULL,
    title TEXT NOT NULL,
    summary TEXT NOT NULL,
    detail TEXT NOT NULL,
    link TEXT NOT NULL,
    when_absent BOOLEAN NOT NULL,
    due_at BIGINT NOT NULL,
    state TEXT NOT NULL DEFAULT 'pending'
        CHECK (state IN ('pending', 'sending', 'sent', 'unsure', 'failed', 'dropped')),
    attempts BIGINT NOT NULL DEFAULT 0,
    changed_at BIGINT NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT '',
    settled TEXT NOT NULL DEFAULT '',
    receipt TEXT NOT NULL DEFAULT '',
    wait TEXT NOT NULL DEFAULT '',
    choices TEXT NOT NULL DEFAULT '[]',
    collapsed_into TEXT COLLATE "C" NOT NULL DEFAULT '' -- the delivery that took its place and that of others
);
CREATE INDEX deliveries_due ON deliveries (due_at, destination) WHERE state = 'pending';
CREATE INDEX deliveries_waiting ON deliveries (destination, seq, id) WHERE state = 'pending';
CREATE INDEX deliveries_interrupted ON deliveries (id) WHERE state = 'sending';
CREATE INDEX deliveries_collapsed ON deliveries (collapsed_into) WHERE collapsed_into <> '';
CREATE INDEX deliveries_by_matter ON deliveries (matter, destination, seq);
CREATE INDEX deliveries_by_time ON deliveries (at, seq);

-- Projection: one row per board.
CREATE TABLE boards (
    id TEXT COLLATE "C" PRIMARY KEY,
    title TEXT NOT NULL,
    paused_by TEXT NOT NULL DEFAULT '',
    archived BOOLEAN NOT NULL DEFAULT FALSE,
    created_at BIGINT NOT NULL,
    version BIGINT NOT NULL
);

-- Projection: one row per card, as much as a board shows of it.
CREATE TABLE cards (
    id TEXT COLLATE "C" PRIMARY KEY,
    board TEXT COLLATE "C" NOT NULL,
    title TEXT NOT NULL,
    profile TEXT NOT NULL,
    workspace TEXT NOT NULL,
    priority BIGINT NOT NULL,
    status TEXT NOT NULL CHECK (status IN
        ('triage', 'todo', 'scheduled', 'ready', 'running', 'blocked', 'review', 'done', 'archived')),
    done BOOLEAN NOT NULL DEFAULT FALSE, -- also once it is archived: nobody waits for it any more
    reason TEXT NOT NULL DEFAULT '',
    block_kind TEXT NOT NULL DEFAULT '',
    scheduled_at BIGINT,
    retry_at BIGINT,
    run BIGINT NOT NULL DEFAULT 0,
    session TEXT COLLATE "C" NOT NULL DEFAULT '',
    comments BIGINT NOT NULL DEFAULT 0,
    warning TEXT NOT NULL DEFAULT '',
    created_by TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    moved_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    version BIGINT NOT NULL,
    root TEXT COLLATE "C" NOT NULL DEFAULT '',
    number BIGINT NOT NULL DEFAULT 0, -- the number that people say (HF-118), from its CardCreated
    tell TEXT NOT NULL DEFAULT 'default' CHECK (tell IN ('default', 'always', 'never')),
    node TEXT NOT NULL DEFAULT '', -- the name or label that it asks for
    assigned TEXT NOT NULL DEFAULT '', -- the node that is to start its next run
    host TEXT NOT NULL DEFAULT '' -- the node of its last run
);
CREATE UNIQUE INDEX cards_by_number ON cards (number) WHERE number > 0;
CREATE INDEX cards_by_root ON cards (root) WHERE root <> '';
CREATE INDEX cards_in_order ON cards (board, status, priority DESC, created_at, id);
CREATE INDEX cards_to_promote ON cards (priority DESC, created_at, id) WHERE status IN ('todo', 'scheduled');
CREATE INDEX cards_to_start ON cards (priority DESC, created_at, id) WHERE status = 'ready';
CREATE INDEX cards_assigned ON cards (id) WHERE assigned <> '';

-- Projection: which card waits for which.
CREATE TABLE card_links (
    parent TEXT COLLATE "C" NOT NULL,
    child TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (parent, child)
);
CREATE INDEX card_links_by_child ON card_links (child, parent);

-- Projection: one row per run. The partial index is promise 2 as the database sees it.
CREATE TABLE runs (
    card TEXT COLLATE "C" NOT NULL,
    run BIGINT NOT NULL,
    session TEXT COLLATE "C" NOT NULL,
    task TEXT COLLATE "C" NOT NULL,
    profile TEXT NOT NULL,
    resumes BIGINT NOT NULL,
    fresh_because TEXT NOT NULL,
    workspace TEXT NOT NULL,
    after_turn BIGINT NOT NULL,
    until_turn BIGINT,
    outcome TEXT NOT NULL DEFAULT 'running'
        CHECK (outcome IN ('running', 'done', 'blocked', 'failed', 'stopped', 'lost')),
    failure TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    counts BOOLEAN NOT NULL DEFAULT FALSE,
    note TEXT NOT NULL DEFAULT '',
    started_at BIGINT NOT NULL,
    finished_at BIGINT,
    node TEXT NOT NULL DEFAULT 'local',
    PRIMARY KEY (card, run)
);
CREATE UNIQUE INDEX runs_open ON runs (card) WHERE finished_at IS NULL;
CREATE UNIQUE INDEX runs_open_session ON runs (session) WHERE finished_at IS NULL;
CREATE INDEX runs_by_session ON runs (session);

-- Search, made of events: each text with the trigrams of its folded form as numbers. Arrays and GIN are part of every server.
CREATE TABLE texts (
    seq BIGINT PRIMARY KEY,
    session TEXT COLLATE "C" NOT NULL,
    version BIGINT NOT NULL,
    at BIGINT NOT NULL,
    role TEXT NOT NULL,
    text TEXT NOT NULL,
    task TEXT COLLATE "C" NOT NULL,
    folded TEXT COLLATE "C" NOT NULL,
    trigrams INTEGER[] NOT NULL
);
CREATE INDEX texts_by_session ON texts (session);
CREATE INDEX texts_by_task ON texts (task) WHERE task <> '';
CREATE INDEX texts_by_trigram ON texts USING gin (trigrams);
CREATE TABLE inputs (
    session TEXT COLLATE "C" NOT NULL,
    input TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (session, input)
);

-- Stored bytes as JSON, for the few queries that look inside. PostgreSQL reads no escaped NUL.
CREATE FUNCTION event_json(data BYTEA) RETURNS JSON LANGUAGE sql IMMUTABLE
    RETURN replace(convert_from(data, 'UTF8'), '\u0000', '\ufffd')::JSON;

-- Whether one of the texts contains the first, which is folded already. `fold_text` is made by migrate.py: it depends on
-- the version of the server.
CREATE FUNCTION has_text(folded TEXT, VARIADIC texts TEXT[]) RETURNS BOOLEAN LANGUAGE sql IMMUTABLE
    RETURN EXISTS (SELECT 1 FROM unnest(texts) t WHERE strpos(fold_text(t), folded) > 0);

-- Counts are kept and not made: to count a million rows takes a tenth of a second. By triggers, so that they are true also
-- while a version that does not know them writes beside this one. Only whoever has the lock of the log writes these tables.
CREATE FUNCTION add_to_counter(counter TEXT, change BIGINT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    IF change <> 0 THEN
        INSERT INTO counters AS c (name, value) VALUES (counter, change)
        ON CONFLICT (name) DO UPDATE SET value = c.value + excluded.value;
    END IF;
END $$;
CREATE FUNCTION count_sessions() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
DECLARE
    total BIGINT := 0;
    put_away BIGINT := 0;
    messages BIGINT := 0;
BEGIN
    IF TG_OP <> 'DELETE' THEN
        SELECT COUNT(*), COUNT(*) FILTER (WHERE archived), COALESCE(SUM(message_count), 0)
        INTO total, put_away, messages FROM new_rows;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        SELECT total - COUNT(*), put_away - COUNT(*) FILTER (WHERE archived),
            messages - COALESCE(SUM(message_count), 0)
        INTO total, put_away, messages FROM old_rows;
    END IF;
    PERFORM add_to_counter('sessions', total), add_to_counter('sessions/archived', put_away),
        add_to_counter('messages', messages);
    RETURN NULL;
END $$;
CREATE FUNCTION count_tasks() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    IF TG_OP <> 'DELETE' THEN
        PERFORM add_to_counter('tasks/' || state, COUNT(*)),
            add_to_counter('bytes/' || state, SUM(output_bytes - dropped_bytes)::BIGINT)
        FROM new_rows WHERE NOT foreground GROUP BY state;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        PERFORM add_to_counter('tasks/' || state, -COUNT(*)),
            add_to_counter('bytes/' || state, -SUM(output_bytes - dropped_bytes)::BIGINT)
        FROM old_rows WHERE NOT foreground GROUP BY state;
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION count_deleted_events() RETURNS TRIGGER LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
    PERFORM add_to_counter('events/deleted', (SELECT COUNT(*) FROM old_rows));
    RETURN NULL;
END $$;

CREATE TRIGGER sessions_added AFTER INSERT ON sessions REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_sessions();
CREATE TRIGGER sessions_changed AFTER UPDATE ON sessions REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_sessions();
CREATE TRIGGER sessions_removed AFTER DELETE ON sessions REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_sessions();
CREATE TRIGGER tasks_added AFTER INSERT ON tasks REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_tasks();
CREATE TRIGGER tasks_changed AFTER UPDATE ON tasks REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_tasks();
CREATE TRIGGER tasks_removed AFTER DELETE ON tasks REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_tasks();
-- The log has no gaps but those of deleted events, so the end of the log and their number say how many there are.
CREATE TRIGGER events_removed AFTER DELETE ON events REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION count_deleted_events();

-- Counts everything anew: after a migration, a copy and a rebuild.
CREATE FUNCTION recount() RETURNS VOID LANGUAGE sql SET search_path FROM CURRENT AS $$
    DELETE FROM counters WHERE name IN ('sessions', 'sessions/archived', 'messages', 'events/deleted')
        OR name LIKE 'tasks/%' OR name LIKE 'bytes/%';
    INSERT INTO counters (name, value)
        SELECT 'sessions', COUNT(*) FROM sessions
        UNION ALL SELECT 'sessions/archived', COUNT(*) FROM sessions WHERE archived
        UNION ALL SELECT 'messages', COALESCE(SUM(message_count), 0) FROM sessions
        UNION ALL SELECT 'events/deleted', COALESCE(MAX(seq), 0) - COUNT(*) FROM events
        UNION ALL SELECT 'tasks/' || state, COUNT(*) FROM tasks WHERE NOT foreground GROUP BY state
        UNION ALL SELECT 'bytes/' || state, SUM(output_bytes - dropped_bytes) FROM tasks WHERE NOT foreground GROUP BY state;
$$;
SELECT recount();
