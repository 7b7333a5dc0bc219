-- Columns are called what their fields are called; two booleans in place of two bits.
ALTER TABLE sessions RENAME COLUMN begun_at TO first_input_at;
ALTER TABLE sessions RENAME COLUMN fresh_at TO last_active_at;
ALTER TABLE sessions RENAME COLUMN asked_turn TO person_turn;
ALTER TABLE sessions ADD COLUMN compaction_requested INTEGER NOT NULL DEFAULT 0 CHECK (compaction_requested IN (0, 1));
ALTER TABLE sessions ADD COLUMN compaction_running INTEGER NOT NULL DEFAULT 0 CHECK (compaction_running IN (0, 1));
UPDATE sessions SET compaction_requested = compacting & 1, compaction_running = (compacting & 2) / 2 WHERE compacting > 0;
ALTER TABLE sessions DROP COLUMN compacting;

-- The machine on which a session, a task or a run is worked on.
ALTER TABLE sessions ADD COLUMN node TEXT NOT NULL DEFAULT 'local';
ALTER TABLE tasks ADD COLUMN node TEXT NOT NULL DEFAULT 'local';
ALTER TABLE runs ADD COLUMN node TEXT NOT NULL DEFAULT 'local';
