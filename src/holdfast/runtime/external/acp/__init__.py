"""The Agent Client Protocol, as much of it as a durable client needs: JSON-RPC, one message a line.

`protocol.py` has the messages, `lines.py` turns an agent's lines into events, with `content.py` (calls and what they
produced), `options.py` (of a permission), `elicitation.py` (forms) and `answers.py` (to both); `process.py` is the
process that speaks it.

File system and terminal are not offered to agents: a client that was killed could not serve them.
"""
