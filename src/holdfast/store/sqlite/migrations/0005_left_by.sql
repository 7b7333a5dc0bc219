-- The task whose command ended and left these processes behind; empty for every other task.
ALTER TABLE tasks ADD COLUMN left_by TEXT NOT NULL DEFAULT '';
