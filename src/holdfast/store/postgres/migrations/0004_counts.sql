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

-- What is asked again and again of everything: what is not at rest, and what happened lately.
CREATE INDEX sessions_unfinished ON sessions (id) WHERE queued > 0 OR compaction_requested OR compaction_running
    OR turn_state IN ('running', 'waiting', 'suspended');
CREATE INDEX turns_by_end ON turns (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX tasks_by_end ON tasks (finished_at) WHERE finished_at IS NOT NULL AND NOT foreground;
CREATE INDEX waits_by_time ON waits (opened_at);
