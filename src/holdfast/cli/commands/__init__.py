"""The commands, one module per noun, and the table of them."""

from __future__ import annotations

COMMANDS = {
    "Work": {
        "chat": ("run", "Chat with an agent; `holdfast` alone does the same."),
        "open": ("gateway", "Open the dashboard in a browser, signed in."),
        "run": ("run", "Start a session with a prompt and print the answer."),
        "send": ("run", "Send a message to a session."),
        "stop": ("run", "Stop the running turn of a session."),
        "start": ("start", "Run a command that outlives this terminal and the gateway."),
        "board": ("boards", "Show, watch, pause and resume a board."),
        "card": ("cards", "Add, show and change cards (jobs for agents)."),
        "inbox": ("inbox", "List everything that waits for you, and how to answer it."),
        "answer": ("inbox", "Answer a question or an approval, from anywhere."),
    },
    "Show": {
        "sessions": ("sessions", "List, read, search, reset, archive, delete and export sessions."),
        "tasks": ("tasks", "List, read, wait for and stop background tasks."),
        "why": ("why", "Show what something is doing or waiting for, and why."),
        "status": ("gateway", "Show the address of the gateway and what is running."),
        "logs": ("gateway", "Show the gateway's log."),
    },
    "Gateway": {
        "serve": ("gateway", "Run the gateway in this terminal."),
        "shutdown": ("gateway", "Stop the gateway; commands keep running."),
        "restart": ("gateway", "Restart the gateway, or start one if none is running."),
        "doctor": ("gateway", "Check the installation, the settings and the database."),
        "nodes": ("nodes", "List the gateways on one PostgreSQL database, drain and forget them."),
        "store": ("store", "Show where the log is kept; copy it from SQLite to PostgreSQL or back."),
        "config": ("settings", "Show or check the settings."),
        "profiles": ("settings", "List, show, add, change and remove profiles (agents)."),
        "agents": ("agents", "List, add and test external agents, such as Claude Code."),
        "notify": ("notify", "Show where notifications go, send a test, and list what was sent."),
        "telegram": ("notify", "Show the Telegram bot, and choose who may talk to it."),
        "devices": ("gateway", "List the browsers that are signed in, and sign them out."),
        "models": ("settings", "Show the models that were found on this machine."),
        "completion": ("gateway", "Print a completion script for your shell."),
    },
}
"""By section: the name of a command, its module in this package, and its one-line help."""
