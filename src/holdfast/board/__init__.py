"""The board: cards, the dispatcher that starts their runs, and the tools of workers."""
