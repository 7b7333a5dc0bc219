"""Telegram, both ways: a chat or a topic of a group is a session.

`bot.py` asks for updates and keeps the people apart, `bot_api.py` is the client, `channel.py` sends, `formatting.py`
turns Markdown into what Telegram shows. What people write becomes commands in `notify/chat_commands.py`.
"""
