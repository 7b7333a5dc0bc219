"""The chat: a terminal on one session.

    events → `view.py` (what is finished, what is still alive) → `paint.py` → `terminal.py`
    what is typed → `slash.py` → `controller.py` → `connection.py`, `actions.py`, `passthrough.py` → the gateway

Everything shown comes out of the event stream, so all terminals of a session show the same.
"""
