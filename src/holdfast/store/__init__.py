"""The log: append, read, tail, claim. `port.py` is the contract, `sqlite.py` the embedded engine."""
