"""A typed client of the gateway, for programs; the command line is its first user."""
