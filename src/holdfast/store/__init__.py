"""The log: append, read, tail, claim. `contract.py` is the contract, `sqlite.py` the embedded engine."""
