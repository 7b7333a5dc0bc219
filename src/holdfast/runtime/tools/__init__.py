"""The tools of agents, each with the class of its effect. The file tools stay in the directories of the profile."""

from __future__ import annotations

from holdfast.runtime.tools.reading import LIST, READ
from holdfast.runtime.tools.searching import SEARCH
from holdfast.runtime.tools.tool import AnyTool
from holdfast.runtime.tools.writing import EDIT, WRITE

__all__ = ["EDIT", "LIST", "READ", "SEARCH", "WRITE", "file_tools"]


def file_tools() -> list[AnyTool]:
    """Return all file tools."""
    return [READ, LIST, SEARCH, WRITE, EDIT]
