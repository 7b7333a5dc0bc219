"""What the chat keeps in the home: private, whole, and shared by several chats."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from holdfast.cli.chat.complete import MOST, matches, mention
from holdfast.cli.chat.local_state import CURSORS, InputHistory, ReadCursors, state_folder
from holdfast.config import Home


def test_cursors_only_grow_and_are_private(tmp_path: Path) -> None:
    place = state_folder(Home(tmp_path / "home"))
    cursors = ReadCursors(place)
    assert cursors.get("a") is None
    cursors.set("a", 5)
    ReadCursors(place).set("a", 3)
    assert cursors.get("a") == 5
    assert place.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in place.iterdir()} == {0o600}


def test_many_chats_at_once_lose_no_cursor(tmp_path: Path) -> None:
    def write(name: str) -> None:
        for version in range(1, 21):
            ReadCursors(tmp_path).set(f"{name}{version}", version)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(ReadCursors(tmp_path).get(f"{name}{version}") == version for name in "abcd" for version in range(1, 21))


def test_cursors_are_bounded_and_damage_costs_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "cursors.json").write_text("{half a")
    cursors = ReadCursors(tmp_path)
    assert cursors.get("a") is None
    many = ", ".join(f'"{number}": 1' for number in range(CURSORS + 50))
    (tmp_path / "cursors.json").write_text(f"{{{many}}}")
    cursors.set("new", 7)
    assert (cursors.get("0"), cursors.get("new")) == (None, 7)


def test_history_keeps_lines_and_is_private(tmp_path: Path) -> None:
    submit = InputHistory(tmp_path)
    assert submit.load() == []
    submit.add("one\ntwo")
    submit.add("grüße \udcff")
    with (tmp_path / "history").open("a") as file:
        file.write('"cut by a full di\n17\n')
    assert InputHistory(tmp_path).load() == ["one\ntwo", "grüße \udcff"]
    assert (tmp_path / "history").stat().st_mode & 0o777 == 0o600


def test_history_does_not_grow_for_ever(tmp_path: Path) -> None:
    submit = InputHistory(tmp_path)
    for number in range(1200):
        submit.add(f"{number} " + "x" * 1000)
    assert submit.load()[-1].startswith("1199 ")
    assert (tmp_path / "history").stat().st_size < 1_000_000
    assert submit.load()[-1].startswith("1199 ")


def test_a_history_that_cannot_be_shortened_is_still_read(tmp_path: Path) -> None:
    submit = InputHistory(tmp_path)
    for number in range(20):
        submit.add(f"{number} " + "x" * 60_000)
    (tmp_path / f"history.{os.getpid()}").mkdir()  # in the way, as a full disk would be
    assert submit.load()[-1].startswith("19 ")


def test_a_mention_is_the_text_after_an_at_sign() -> None:
    assert mention("look at @src/ho") == "src/ho"
    assert mention("@") == ""
    assert mention("a@b.c") is None
    assert mention("@a b") is None
    assert mention("one\n@x") == "x"


def test_files_are_found_below_the_directory_and_only_there(tmp_path: Path) -> None:
    cwd = tmp_path / "project"
    for name in ("README.md", "src/app.py", "src/deep/apple.txt", ".git/config", "node_modules/app.js", ".env"):
        path = cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / "secret").write_text("x")
    (cwd / "bad\x1b[31mname").write_text("x")
    (cwd / "link").symlink_to(tmp_path, target_is_directory=True)
    assert matches(cwd, "") == ["node_modules/", "src/", "README.md", "link"]
    assert matches(cwd, "src/") == ["src/deep/", "src/app.py"]
    assert matches(cwd, "app") == ["src/app.py", "src/deep/apple.txt"]
    assert matches(cwd, ".e") == [".env"]
    for outside in ("../", "../sec", "/etc/pas", "~/", "src/../../sec"):
        assert matches(cwd, outside) == []
    assert matches(tmp_path / "gone", "x") == []


def test_a_large_directory_does_not_take_long(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"file{number:03}").write_text("")
    assert len(matches(tmp_path, "file")) == MOST
    ticks = iter(range(1000))
    assert matches(tmp_path, "7", clock=lambda: float(next(ticks))) == []
