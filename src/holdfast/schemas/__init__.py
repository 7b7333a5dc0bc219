"""The structs that the gateway sends and takes besides events and commands, shared with its clients.

What a gateway sends has no closed sets of words: a newer one may have more, and a client must still read the rest.
"""
