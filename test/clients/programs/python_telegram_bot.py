"""A bot that uses python-telegram-bot 13. Prints each text that the bot handles. `/draft` and `/edit` stream their words."""
import json
import os

from telegram import Bot
from telegram.ext import CommandHandler, Filters, MessageHandler, Updater
from telegram.utils.request import Request

headers = json.loads(os.environ["HEADERS"])
root = os.environ["API_ROOT"]


class HeaderRequest(Request):
    def _request_wrapper(self, *args, **named):
        named["headers"] = {**named.get("headers", {}), **headers}
        return super()._request_wrapper(*args, **named)


def growing(words):
    for n in range(1, len(words) + 1):
        yield " ".join(words[:n])


def draft(update, context):
    message, bot = update.message, context.bot
    for text in growing(context.args):
        # This version of the library has no method for drafts.
        shown = {"chat_id": message.chat_id, "draft_id": message.message_id, "text": text}
        bot.request.post(f"{bot.base_url}/sendMessageDraft", shown)
    bot.send_message(message.chat_id, " ".join(context.args))


def edit(update, context):
    sent = context.bot.send_message(update.message.chat_id, "…")
    for text in growing(context.args):
        sent.edit_text(text)


def handle(update, context):
    print(f"handled {update.message.chat_id} {update.message.text}", flush=True)


def main():
    # The default limit of 5 s is too short for a busy machine.
    request = HeaderRequest(con_pool_size=8, connect_timeout=60, read_timeout=60)
    updater = Updater(bot=Bot(os.environ["BOT_TOKEN"], f"{root}/bot", f"{root}/file/bot", request))
    for handler in (
        CommandHandler("draft", draft),
        CommandHandler("edit", edit),
        MessageHandler(Filters.text & ~Filters.command, handle),
    ):
        updater.dispatcher.add_handler(handler)
    updater.dispatcher.add_error_handler(lambda update, context: print(repr(context.error), flush=True))
    updater.start_polling(timeout=1)
    print("ready", flush=True)
    updater.idle()


main()
