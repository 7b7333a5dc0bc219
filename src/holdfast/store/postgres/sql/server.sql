-- What the doctor asks about a server. Everybody may ask it; of others a user without rights sees less.

-- name: server_settings
-- What decides whether a commit is kept.
SELECT name, setting FROM pg_settings
WHERE name IN ('server_version', 'fsync', 'full_page_writes', 'autovacuum', 'synchronous_standby_names');

-- name: server_state
-- Connections, replication, size and age. What standbys do is only shown to those who may see it.
SELECT (SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used_connections,
    current_setting('max_connections')::INTEGER - current_setting('superuser_reserved_connections')::INTEGER
        - COALESCE(current_setting('reserved_connections', TRUE), '0')::INTEGER AS connections,
    (SELECT COUNT(*) FROM pg_stat_replication) AS standbys,
    (SELECT COUNT(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')) AS synchronous_standbys,
    pg_has_role('pg_read_all_stats', 'USAGE') AS sees_standbys,
    (SELECT COALESCE(MAX(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)), 0)::BIGINT FROM pg_replication_slots
        WHERE NOT active) AS kept_wal_bytes,
    pg_database_size(current_database()) AS database_bytes,
    (SELECT age(datfrozenxid)::BIGINT FROM pg_database WHERE datname = current_database()) AS transaction_age,
    (SELECT COALESCE(EXTRACT(EPOCH FROM MAX(clock_timestamp() - xact_start)), 0)::BIGINT FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()
    ) AS oldest_transaction_seconds;

-- name: dead_rows
-- The table with the most rows that are to be cleaned up.
SELECT relname AS name, n_live_tup AS live, n_dead_tup AS dead FROM pg_stat_user_tables WHERE schemaname = :schema
ORDER BY n_dead_tup DESC, relname LIMIT 1;
