"""Gives the bots of python-telegram-bot the API root of a test. Python imports this before the program."""
import os

import telegram

root = os.environ["API_ROOT"]
create = telegram.Bot.__init__


def create_at_root(self, token, *rest, **named):
    for name, path in ("base_url", "bot"), ("base_file_url", "file/bot"):
        named[name] = named.get(name) or f"{root}/{path}"
    create(self, token, *rest, **named)


telegram.Bot.__init__ = create_at_root
