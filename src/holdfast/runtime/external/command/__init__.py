"""Command-line agents: one process a turn, which says on its standard output what it does, line by line.

A parser for each format (`claude.py`, `codex.py`, `gemini.py`, `opencode.py`, `plain.py`) turns a line into `items.py`;
`reader.py` turns those into events of the turn, the same for every agent. `arguments.py` makes the command line. The
driver is `runtime/drivers/command.py`.
"""
