"""The path of a file after all links are followed, whatever others do to the file meanwhile."""

from __future__ import annotations

import threading
from pathlib import Path

from holdfast.runtime.tools.context import real_path

LOOKS = 5_000


def test_a_file_that_is_replaced_meanwhile_keeps_its_path(tmp_path: Path) -> None:
    """Every write of a tool replaces its file; another session may look at it in that moment."""
    file, over = tmp_path / "file", threading.Event()
    file.write_text("old")

    def replace() -> None:
        while not over.is_set():
            draft = tmp_path / "draft"
            draft.write_text("new")
            draft.replace(file)

    replacing = threading.Thread(target=replace)
    replacing.start()
    try:
        found = {real_path(file) for _ in range(LOOKS)}
    finally:
        over.set()
        replacing.join()
    assert found == {str(file.resolve())}


def test_a_name_that_ends_like_that_of_a_deleted_file(tmp_path: Path) -> None:
    odd = tmp_path / "notes (deleted)"
    odd.write_text("here")
    (tmp_path / "link").symlink_to(odd)
    assert real_path(odd) == real_path(tmp_path / "link") == str(odd.resolve())
