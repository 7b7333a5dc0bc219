-- Failed turns are in the inbox until a person deals with them.
ALTER TABLE sessions ADD COLUMN failed_turn INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET failed_turn = turn WHERE turn_state = 'failed' AND archived = 0;
CREATE INDEX sessions_failed ON sessions (id) WHERE failed_turn > 0;
