"""The Agent Client Protocol, as much of it as a durable client needs: JSON-RPC, one message a line.

`protocol.py` has the messages, `lines.py` turns an agent's lines into events, `process.py` is the process that speaks
it, `prompt.py` is what the agent is told. The driver is `runtime/drivers/acp.py`.

File system and terminal are not offered to agents: a client that was killed could not serve them.
"""
