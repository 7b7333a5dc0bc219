-- As the queries ask now; with "archived = 0" SQLite took another index and read every session.
DROP INDEX sessions_begun;
CREATE INDEX sessions_begun ON sessions (id) WHERE first_input_at > 0 AND NOT archived;
DROP INDEX sessions_with_policy;
CREATE INDEX sessions_with_policy ON sessions (id) WHERE first_input_at > 0 AND NOT archived AND reset_policy <> '{}';
