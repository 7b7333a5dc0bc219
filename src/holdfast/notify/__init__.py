"""Tells people who are not looking: what waits for them, what is done, what failed.

`notices.py` says what an event of the log tells, `planner.py` puts it into the outbox (`store/outbox_store.py`),
`sender.py` delivers it through the channels: one module each, behind the protocol of `channel.py`.
"""
