-- Whether people are told of a session, a task or a card, whatever the rules of the destinations say.
ALTER TABLE sessions ADD COLUMN tell TEXT NOT NULL
    DEFAULT 'default' CHECK (tell IN ('default', 'always', 'never'));
ALTER TABLE tasks ADD COLUMN tell TEXT NOT NULL
    DEFAULT 'default' CHECK (tell IN ('default', 'always', 'never'));
ALTER TABLE cards ADD COLUMN tell TEXT NOT NULL
    DEFAULT 'default' CHECK (tell IN ('default', 'always', 'never'));
-- Whether a session belongs to a run is asked for each end of a turn.
CREATE INDEX runs_by_session ON runs (session);
