-- The events have been written anew (event_shapes.py); the projections are made anew from them after all migrations.
DELETE FROM counters WHERE name = 'events_rewritten';
INSERT INTO counters (name, value) SELECT 'rebuild_projections', 1 WHERE EXISTS (SELECT 1 FROM events);
