"""Permission rules: how a pattern is matched against a path or a shell command line. No I/O."""
