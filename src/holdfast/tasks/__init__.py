"""Tasks: background work that keeps a permanent record. Commands under a keeper, agents, their output and log."""
