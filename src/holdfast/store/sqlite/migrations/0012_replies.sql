-- What a command was answered besides where it stands, so that a retry gets the same answer.
ALTER TABLE commands ADD COLUMN reply TEXT NOT NULL DEFAULT '{}';
