"""The structs that the gateway sends and takes besides events and commands, shared with its clients."""
