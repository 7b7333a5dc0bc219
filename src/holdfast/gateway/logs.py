"""The gateway's log: one JSON object a line, in a file that is rotated."""

from __future__ import annotations

import json
import logging
import logging.handlers
import time
from pathlib import Path

KEPT = 5


class JsonLines(logging.Formatter):
    """One object a line, for people with grep and for machines."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, who, what; and the trace of an error."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line = {
            "at": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if hint := getattr(record, "hint", ""):
            line["hint"] = hint
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def start_logging(path: Path, size: int) -> None:
    """Everything of ours from INFO on, everybody else's warnings."""
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=size, backupCount=KEPT, encoding="utf-8")
    handler.setFormatter(JsonLines())
    logging.raiseExceptions = False  # a log that cannot be written, on a full disk, must not fill stderr with traces
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("holdfast").setLevel(logging.INFO)
