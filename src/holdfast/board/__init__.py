"""The board: cards that agents work on, the dispatcher that starts them, and what a worker learns of earlier runs."""
