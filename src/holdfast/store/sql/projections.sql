-- What each event does to the projections, in the transaction that appends it.

-- name: create_session
-- A session appears in the list.
INSERT INTO sessions (id, title, profile, cwd, parent, task, ancestors, created_at, updated_at, version)
VALUES (:session, :title, :profile, :cwd, :parent, :task, :ancestors, :at, :at, :version);

-- name: choose_agent
-- Another profile or model.
UPDATE sessions SET profile = :profile, model = :model, version = :version WHERE id = :session;

-- name: open_wait
-- A turn stands still.
INSERT INTO waits (id, session, turn, version, purpose, reason, call, choices, pattern, until, shown, opened_at)
VALUES (:wait, :session, :turn, :version, :purpose, :reason, :call, :choices, :pattern, :until, :shown, :at);

-- name: answer_wait
-- It was answered, once.
UPDATE waits SET state = 'answered', answer = :answer, answered_by = :by, ended_at = :at
WHERE id = :wait AND state = 'open';

-- name: close_waits
-- Its turn ended without an answer.
UPDATE waits SET state = 'closed', ended_at = :at WHERE session = :session AND turn = :turn AND state = 'open';

-- name: delete_waits
-- Gone with their session.
DELETE FROM waits WHERE session = :session;

-- name: clear_waits
-- For a rebuild.
DELETE FROM waits;

-- name: touch_session
-- Every event moves the version; only what people or the agent say moves the place in the list.
UPDATE sessions SET version = :version WHERE id = :session;

-- name: bind_session
-- A worker of a card is at it, in the workspace of that card.
UPDATE sessions SET cwd = COALESCE(NULLIF(:cwd, ''), cwd), version = :version WHERE id = :session;

-- name: rename_session
-- Another title.
UPDATE sessions SET title = :title, version = :version WHERE id = :session;

-- name: archive_session
-- Out of the default list, or back in.
UPDATE sessions SET archived = :archived, failed_turn = CASE WHEN :archived THEN 0 ELSE failed_turn END,
    version = :version
WHERE id = :session;

-- name: dismiss_failure
-- A person has seen that its last turn failed, or took that turn back.
UPDATE sessions SET failed_turn = 0 WHERE id = :session AND failed_turn = :turn;

-- name: input_received
-- One more message, one more in the queue.
UPDATE sessions SET message_count = message_count + 1, queued = queued + 1, updated_at = :at,
    version = :version, title = CASE WHEN title = '' THEN :title ELSE title END,
    begun_at = CASE WHEN begun_at = 0 AND :by_person THEN :at ELSE begun_at END,
    fresh_at = CASE WHEN :by_person THEN :at ELSE fresh_at END
WHERE id = :session;

-- name: inputs_taken
-- Messages leave the queue.
UPDATE sessions SET queued = queued - :count, version = :version,
    asked_turn = CASE WHEN :by_person THEN turn ELSE asked_turn END
WHERE id = :session;

-- name: agent_said
-- One more message, with its first words for the list.
UPDATE sessions SET message_count = message_count + :count, updated_at = :at, version = :version,
    preview = CASE WHEN :preview = '' THEN preview ELSE :preview END
WHERE id = :session;

-- name: add_spoken
-- Where a finished text of the agent stands.
INSERT INTO spoken (session, version, at) VALUES (:session, :version, :at);

-- name: pin_session
-- On top of the list, or not any more.
UPDATE sessions SET pinned = :pinned, version = :version WHERE id = :session;

-- name: input_withdrawn
-- A message that no turn will hear.
UPDATE sessions SET message_count = message_count - 1, queued = queued - 1, version = :version WHERE id = :session;

-- name: session_turn
-- The session's own view of its latest turn.
UPDATE sessions SET turn = :turn, turn_state = :state, failed_turn = 0, updated_at = :at, version = :version
WHERE id = :session;

-- name: session_turn_over
-- The same at its end; a turn that a person asked for keeps the session fresh.
UPDATE sessions SET turn_state = :state, failed_turn = CASE :state WHEN 'failed' THEN :turn ELSE 0 END,
    updated_at = :at, version = :version,
    fresh_at = CASE WHEN asked_turn = :turn AND begun_at > 0 THEN :at ELSE fresh_at END
WHERE id = :session;

-- name: person_acted
-- What a person does keeps a session fresh, if there is anything in its chapter.
UPDATE sessions SET fresh_at = :at WHERE id = :session AND begun_at > 0;

-- name: set_reset_policy
-- A person chose when it is reset; that counts from now on.
UPDATE sessions SET reset_policy = :policy, version = :version,
    begun_at = CASE WHEN begun_at > 0 THEN :at ELSE begun_at END
WHERE id = :session;

-- name: open_chapter
-- An empty chapter: nothing in it that a reset could be about.
UPDATE sessions SET chapter = :chapter, chapter_at = :at, begun_at = 0, fresh_at = 0, asked_turn = 0, compacting = 0,
    failed_turn = CASE WHEN :by_person THEN 0 ELSE failed_turn END, version = :version
WHERE id = :session;

-- name: rejoin_chapter
-- The chapter before is open again, as if it had begun now.
UPDATE sessions SET chapter = :chapter - 1, chapter_at = :since, begun_at = :at, fresh_at = :at, compacting = 0,
    version = :version
WHERE id = :session;

-- name: session_compacting
-- Its context is to be made shorter, or was: what is still true of it, and what is new.
UPDATE sessions SET compacting = (compacting & :still) | :more, version = :version WHERE id = :session;

-- name: start_turn
-- A turn begins.
INSERT INTO turns (session, turn, state, started_at) VALUES (:session, :turn, 'running', :at);

-- name: turn_state
-- It waits, is suspended, or runs again.
UPDATE turns SET state = :state, resumes = resumes + :resumed, reason = :reason
WHERE session = :session AND turn = :turn;

-- name: turn_step
-- One more step, and what it cost.
UPDATE turns SET steps = :step, input_tokens = input_tokens + :input_tokens,
    output_tokens = output_tokens + :output_tokens,
    cost = CASE WHEN :cost IS NULL THEN cost ELSE COALESCE(cost, 0) + :cost END
WHERE session = :session AND turn = :turn;

-- name: finish_turn
-- It ended.
UPDATE turns SET state = :state, finished_at = :at, reason = :reason WHERE session = :session AND turn = :turn;

-- name: delete_session
-- Gone from the list.
DELETE FROM sessions WHERE id = :session;

-- name: delete_turns
-- And its turns.
DELETE FROM turns WHERE session = :session;

-- name: delete_spoken
-- And what was said in it.
DELETE FROM spoken WHERE session = :session;

-- name: delete_events
-- And its events: somebody asked for it.
DELETE FROM events WHERE span IN (SELECT span FROM spans WHERE stream = :stream);

-- name: delete_spans
-- And where they were.
DELETE FROM spans WHERE stream = :stream;

-- name: delete_partials
-- And what it was about to say.
DELETE FROM partials WHERE stream = :stream;

-- name: delete_lease
-- And the right to work on it: a worker that still tries is fenced.
DELETE FROM leases WHERE stream = :stream;

-- name: bury_stream
-- What is left: that it existed.
INSERT INTO deleted (stream, at) VALUES (:stream, :at);

-- name: clear_sessions
-- For a rebuild.
DELETE FROM sessions;

-- name: clear_turns
-- For a rebuild.
DELETE FROM turns;

-- name: clear_spoken
-- For a rebuild.
DELETE FROM spoken;

-- name: clear_deleted
-- For a rebuild.
DELETE FROM deleted;
