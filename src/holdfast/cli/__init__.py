"""The command line: an ordinary client of the gateway. Its commands are in `commands/`, one module per noun."""
