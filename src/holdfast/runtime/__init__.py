"""Agents at work. Start with `turn.py`."""
