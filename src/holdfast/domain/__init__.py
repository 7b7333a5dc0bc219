"""The rules, without any I/O: what can be said, what can have happened, and what comes next.

Time and ids are passed in. Nothing here opens a file, reads a clock or rolls a die.
"""
