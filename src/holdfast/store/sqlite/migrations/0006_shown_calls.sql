-- What a person is shown of a call before it is approved: every argument, and the change of a file.
ALTER TABLE waits ADD COLUMN shown TEXT NOT NULL DEFAULT '[]';
