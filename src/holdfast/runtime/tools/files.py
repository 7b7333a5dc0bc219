"""The file tools, all confined to the working directory and what else the profile opens.

Not here: what they do (`reading.py`, `writing.py`, `searching.py`).
"""

from __future__ import annotations

from holdfast.runtime.tools.reading import LIST, READ
from holdfast.runtime.tools.searching import SEARCH
from holdfast.runtime.tools.tool import AnyTool
from holdfast.runtime.tools.writing import EDIT, WRITE

__all__ = ["EDIT", "LIST", "READ", "SEARCH", "WRITE", "file_tools"]


def file_tools() -> list[AnyTool]:
    """All of them."""
    return [READ, LIST, SEARCH, WRITE, EDIT]
