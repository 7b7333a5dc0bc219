"""The embedded engine: the contract of a store on one SQLite file."""
