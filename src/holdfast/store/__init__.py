"""The log: append, read, subscribe, claim. `contract.py` says what a store is; `sqlite/` is the embedded engine."""
