"""Gives the bots of python-telegram-bot the API root of a test. Python imports this before the program."""
import os

import telegram

root = os.environ["API_ROOT"]
create = telegram.Bot.__init__


def create_at_root(self, token, *rest, **named):
    named.setdefault("base_url", f"{root}/bot")
    named.setdefault("base_file_url", f"{root}/file/bot")
    create(self, token, *rest, **named)


telegram.Bot.__init__ = create_at_root
