"""The model port and what serves it: providers over HTTP, the demo model, what was found on this machine."""
