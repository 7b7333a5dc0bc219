-- Nodes ask each other about the commands that run there, and keep copies of the outputs of those that ended.
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
CREATE TABLE output_copies (
    task TEXT COLLATE "C" NOT NULL,
    start BIGINT NOT NULL,
    data BYTEA NOT NULL,
    PRIMARY KEY (task, start)
);
