-- Sessions that are held in a chat of another service, such as Telegram.
ALTER TABLE sessions ADD COLUMN chat TEXT NOT NULL DEFAULT '';
CREATE INDEX sessions_of_chats ON sessions (chat) WHERE chat <> '';
