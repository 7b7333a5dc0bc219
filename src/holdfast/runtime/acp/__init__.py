"""The Agent Client Protocol, as much of it as a durable client needs: JSON-RPC, one message a line.

`protocol.py` has the messages, `lines.py` turns an agent's lines into events, `process.py` is the process that speaks
it. The driver is `runtime/drivers/acp.py`; what it shares with other drivers is in `runtime/drivers/external.py`,
`external_process.py`, `external_steps.py` and `external_prompt.py`.

File system and terminal are not offered to agents: a client that was killed could not serve them.
"""
