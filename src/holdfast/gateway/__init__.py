"""The HTTP API: requests, event streams and WebSockets, all checked by one guard."""
