"""The rules, without any I/O: commands, events, and what comes next.

Time and ids are passed in. Nothing here opens a file, reads a clock or rolls a die.
"""
