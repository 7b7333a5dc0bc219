"""Holdfast: a durable runtime for AI agents. Start reading at `runtime/turn.py`."""

__version__ = "0.1.0"
