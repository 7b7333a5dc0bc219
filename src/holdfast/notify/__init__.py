"""Notifies people who are not looking: of what waits for them, is done or has failed.

`notices.py` says which notice an event causes, `planner.py` puts it into the outbox (`store/outbox_store.py`),
`sender.py` delivers it through the channels: one module each, behind the protocol of `channel.py`.
"""
