-- A sign-in code names the device that created it and ends with it. Codes from before name none: they are dropped.
DROP TABLE codes;
CREATE TABLE codes (
    hash TEXT PRIMARY KEY,
    expires_at INTEGER NOT NULL,
    device TEXT NOT NULL
) WITHOUT ROWID;
