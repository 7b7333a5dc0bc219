"""Answers to `why`: what a session, a card or a task is doing or waiting for, and the event behind each sentence."""
