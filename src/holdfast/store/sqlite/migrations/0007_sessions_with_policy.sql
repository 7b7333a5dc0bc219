-- With no reset rule in config.toml only the sessions that have a policy of their own are looked at.
CREATE INDEX sessions_with_policy ON sessions (id) WHERE begun_at > 0 AND archived = 0 AND reset_policy <> '{}';
