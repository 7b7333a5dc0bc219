"""Search: a trigram index that follows the log with a cursor of its own.

It lives in a file of its own (`search.db`) and in a thread of its own, so that an append never waits
for it and losing it loses nothing: it is filled again from the log. Words of fewer than three
characters are found by a scan of the newest texts.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast.domain.errors import Conflict, HoldfastError, Unavailable
from holdfast.domain.events import Record, decode_readable, location, task_stream
from holdfast.domain.events.session import InputReceived, InputRevised, InputWithdrawn, ToolCallFinished
from holdfast.domain.events.system import SessionDeleted
from holdfast.domain.events.task import TaskFinished, TaskPruned
from holdfast.periodic import FollowerState
from holdfast.store.contract import Hit, OutputFound, Page
from holdfast.store.search_texts import command_output, is_command_result, printed_output, searchable_text, snippet
from holdfast.store.subscriptions import Subscriptions
from holdfast.timings import StoreTimings

PAGE = 500
SCAN = 20_000

SHAPE = 2
"""The version of the tables; an index of another version is rebuilt."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS texts (
    seq INTEGER PRIMARY KEY, session TEXT NOT NULL, version INTEGER NOT NULL, at INTEGER NOT NULL,
    role TEXT NOT NULL, text TEXT NOT NULL, task TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS texts_by_session ON texts (session);
CREATE INDEX IF NOT EXISTS texts_by_task ON texts (task) WHERE task != '';
CREATE VIRTUAL TABLE IF NOT EXISTS grams
    USING fts5 (text, content='texts', content_rowid='seq', tokenize='trigram');
CREATE TABLE IF NOT EXISTS inputs (
    session TEXT NOT NULL, input TEXT NOT NULL, seq INTEGER NOT NULL, PRIMARY KEY (session, input)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cursor (id INTEGER PRIMARY KEY CHECK (id = 1), seq INTEGER NOT NULL);
INSERT OR IGNORE INTO cursor VALUES (1, 0);
"""
_BY_GRAMS = """
SELECT t.session, t.version, t.at, t.role, t.text, t.task FROM grams g JOIN texts t ON t.seq = g.rowid
WHERE grams MATCH :match AND (CASE WHEN :outputs THEN t.task != '' ELSE t.role != 'output' END)
ORDER BY g.rowid DESC LIMIT :limit
"""
_BY_SCAN = """
SELECT session, version, at, role, text, task FROM (
    SELECT * FROM texts WHERE (CASE WHEN :outputs THEN task != '' ELSE role != 'output' END)
    ORDER BY seq DESC LIMIT :scan
) WHERE instr(folded(text), :folded) ORDER BY seq DESC LIMIT :limit
"""

_ADD_TEXTS = """
INSERT INTO texts (seq, session, version, at, role, text, task)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
    json_extract(value, '$[3]'), json_extract(value, '$[4]'), json_extract(value, '$[5]'), json_extract(value, '$[6]')
FROM json_each(?)
"""
_ADD_INPUTS = """
INSERT OR REPLACE INTO inputs (session, input, seq)
SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]') FROM json_each(?)
"""
_FIND_INPUT = """
SELECT i.seq, t.version FROM inputs i JOIN texts t ON t.seq = i.seq WHERE i.session = ? AND i.input = ?
"""
_ADD_GRAMS = "INSERT INTO grams (rowid, text) SELECT seq, text FROM texts WHERE seq BETWEEN ? AND ?"

log = logging.getLogger(__name__)
ReadLog = Callable[[int, int], Page]


class SearchIndex:
    """Follows the log until it is closed."""

    def __init__(self, path: Path, read_log: ReadLog, subscriptions: Subscriptions, timings: StoreTimings) -> None:
        self._path = path
        self._outputs = path.with_name("tasks")
        self._read_log = read_log
        self._subscriptions = subscriptions
        self._timings = timings
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._unusable = ""
        self.state = FollowerState("the search index")
        self._closed_because = ""
        """Why it cannot be opened now, on a full disk; that is tried again."""
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._cursor = 0
        try:
            self._open()
        except sqlite3.OperationalError as error:
            self._closed_because = str(error)
            log.warning("the search index cannot be opened now: %s", error)
        self._thread = threading.Thread(target=self._follow, name="holdfast-search", daemon=True)
        self._thread.start()

    @property
    def cursor(self) -> int:
        """Up to which seq the log is searchable."""
        return self._cursor

    def search(self, text: str, limit: int) -> list[Hit]:
        """Where a text occurs in a conversation, newest first; letters match in either case."""
        rows = self._find(text, limit, outputs=False)
        return [Hit(session, version, at, role, snippet(body, text)) for session, version, at, role, body, _ in rows]

    def search_outputs(self, text: str, limit: int) -> list[OutputFound]:
        """In which task's output a text occurs, newest first."""
        rows = self._find(text, limit, outputs=True)
        return [OutputFound(task, snippet(body, text)) for *_, body, task in rows]

    def _find(self, text: str, limit: int, *, outputs: bool) -> list[tuple[str, int, int, str, str, str]]:
        if len(text) >= 3 and "\0" not in text:
            match = '"' + text.replace('"', '""') + '"'
            query, parameters = _BY_GRAMS, {"match": match, "limit": limit, "outputs": outputs}
        else:
            query, parameters = _BY_SCAN, {"folded": text.casefold(), "scan": SCAN, "limit": limit, "outputs": outputs}
        if self._closed_because:
            message = f"The search index cannot be opened: {self._closed_because}."
            raise Unavailable(message, hint="Free some space; it is retried automatically.")
        try:
            with self._lock:
                return self._db.execute(query, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            if _damaged(error):
                self._unusable = str(error)
                self._subscriptions.ticked.set()
            raise Unavailable(
                f"The search index cannot be read: {error}.", hint="It is rebuilt automatically."
            ) from error

    def close(self) -> None:
        """Stop following; what is missing is caught up at the next start."""
        self._closing.set()
        self._subscriptions.ticked.set()
        self._thread.join()
        self._db.close()

    # --- on the index's thread ------------------------------------------------------------------

    def _open(self) -> None:
        self._db = _open(self._path)
        self._cursor = int(self._db.execute("SELECT seq FROM cursor").fetchone()[0])
        self._closed_because = ""

    def _follow(self) -> None:
        """Follow the log; any error is retried, since without this thread nothing new could be found."""
        while not self._closing.is_set():
            self._subscriptions.ticked.clear()
            try:
                while self._catch_up() and not self._closing.is_set():
                    pass
                self._note("")
            except Exception as error:
                known = isinstance(error, sqlite3.Error | HoldfastError)
                log.warning("search index is stuck at seq %d", self._cursor, exc_info=None if known else error)
                self.state.restarts += not known
                self._note(f"it is stuck at seq {self._cursor} and tries again: {error}")
                self._closing.wait(self._timings.search_retry)
                self._subscriptions.ticked.set()
            self._subscriptions.ticked.wait(self._timings.sweep)  # a commit is a hint
            self._closing.wait(self._timings.search_delay)

    def _note(self, problem: str) -> None:
        if bool(problem) != bool(self.state.problem):
            self.state.since = time.time_ns() // 1_000_000
        self.state.problem = problem

    def _catch_up(self) -> bool:
        if self._closed_because:
            self._open()
        if self._unusable:
            self._begin_anew()
        try:
            page = self._read_log(self._cursor, PAGE)
        except Conflict as error:  # the log was restored from a backup and is shorter than before
            self._unusable = error.message
            return True
        if not page.lines:
            return False
        records, unreadable = decode_readable(page.lines)
        for corrupt in unreadable:
            log.warning("search skips an event: %s", corrupt)
        last = location(page.lines[-1])
        seq = last.seq if last is not None else records[-1].seq
        try:
            with self._lock, self._db:
                self._db.execute("BEGIN")
                self._index(records)
                self._db.execute("UPDATE cursor SET seq = ?", (seq,))
        except sqlite3.DatabaseError as error:
            if not _damaged(error):
                raise
            self._unusable = str(error)
            return True
        self._cursor = seq
        return page.more

    def _begin_anew(self) -> None:
        with self._lock:
            self._db.close()
            self._db = _create(self._path, self._unusable)
            self._cursor, self._unusable = 0, ""

    def _index(self, records: list[Record]) -> None:
        """A page in two statements: one that runs long leaves the interpreter to the writer, many short ones
        would fight with it.
        """
        rows = [row for record in records if (row := searchable_text(record)) is not None]
        if rows:
            self._db.execute(_ADD_TEXTS, (msgspec.json.encode(rows).decode(),))
            self._db.execute(_ADD_GRAMS, (rows[0][0], rows[-1][0]))
        said = [
            (record.stream.partition("/")[2], record.event.input, record.seq)
            for record in records
            if isinstance(record.event, InputReceived)
        ]
        if said:
            self._db.execute(_ADD_INPUTS, (msgspec.json.encode(said).decode(),))
        results = {record.event.task: record.event.output for record in records if is_command_result(record.event)}
        for record in records:
            match record.event:
                case TaskFinished() as event:
                    printed = printed_output(event, self._outputs)
                    output = command_output(record, event, printed, results.get(event.task, ""))
                    if output is not None:
                        self._db.execute("INSERT INTO texts VALUES (?, ?, ?, ?, ?, ?, ?)", output)
                        self._db.execute(_ADD_GRAMS, (record.seq, record.seq))
                case ToolCallFinished() as event if event.task in results:
                    self._drop("session = ? AND instr(?, text)", task_stream(event.task), event.output)
                case SessionDeleted(session=gone):
                    self._drop("session = ?", gone)
                    self._db.execute("DELETE FROM inputs WHERE session = ?", (gone,))
                case TaskPruned(task=gone):
                    self._drop("session = ?", task_stream(gone))
                    self._db.execute("UPDATE texts SET task = '' WHERE task = ?", (gone,))
                case InputRevised(input=input, text=str()) | InputWithdrawn(input=input):
                    self._change(record, input)
                case _:
                    continue

    def _drop(self, where: str, *of: str | int) -> None:
        found = self._db.execute(f"SELECT seq, text FROM texts WHERE {where}", of).fetchall()  # noqa: S608
        self._db.executemany("INSERT INTO grams (grams, rowid, text) VALUES ('delete', ?, ?)", found)
        self._db.execute(f"DELETE FROM texts WHERE {where}", of)  # noqa: S608

    def _change(self, record: Record, input: str) -> None:
        """A message was edited or withdrawn: its old text is no longer found."""
        session = record.stream.partition("/")[2]
        row = self._db.execute(_FIND_INPUT, (session, input)).fetchone()
        if row is None:
            return
        seq, version = row
        self._drop("seq = ?", seq)
        self._db.execute("UPDATE texts SET version = ? WHERE seq = ?", (version, record.seq))
        self._db.execute("UPDATE inputs SET seq = ? WHERE session = ? AND input = ?", (record.seq, session, input))


def _open(path: Path) -> sqlite3.Connection:
    """Open the index, or begin a new one when it cannot be read: the log has everything."""
    try:
        return _connect(path)
    except sqlite3.DatabaseError as error:
        if not _damaged(error):
            raise
        return _create(path, str(error))


def _create(path: Path, why: str) -> sqlite3.Connection:
    log.warning("the search index is unusable (%s) and is rebuilt", why)
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return _connect(path)


def _damaged(error: sqlite3.DatabaseError) -> bool:
    """Malformed or no database at all, unlike a disk that is full or a file that cannot be opened now."""
    return not isinstance(error, sqlite3.OperationalError)


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=NORMAL")
    db.create_function("folded", 1, str.casefold, deterministic=True)
    shape = int(db.execute("PRAGMA user_version").fetchone()[0])
    if shape != SHAPE and db.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
        db.close()
        raise sqlite3.DatabaseError("it was made by another version")
    db.executescript(f"{_SCHEMA}PRAGMA user_version = {SHAPE};")
    return db
