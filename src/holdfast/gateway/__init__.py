"""The doors: HTTP, event streams, WebSockets, all behind one guard."""
