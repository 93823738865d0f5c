"""The feature bot with python-telegram-bot 13. The library is unmodified; only the API root is set.

Prints `ready` once it gets updates, and `failed: ...` if a handler fails. Runs until SIGTERM.
"""
import os

from telegram import (
    Bot,
    ChatPermissions,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InlineQueryResultArticle,
    InputMediaPhoto,
    InputTextMessageContent,
    ReplyKeyboardMarkup,
    ReplyKeyboardRemove,
)
from telegram.error import BadRequest
from telegram.ext import (
    CallbackQueryHandler,
    ChosenInlineResultHandler,
    CommandHandler,
    ConversationHandler,
    Filters,
    InlineQueryHandler,
    MessageHandler,
    PollAnswerHandler,
    Updater,
)
from telegram.utils.request import Request

KINDS = ["message", "callback_query", "inline_query", "chosen_inline_result", "poll_answer"]
COUNT, CITY = range(2)

with open(os.environ["PICTURE"], "rb") as file:
    picture = file.read()


def say(message, text, **more):
    return message.bot.send_message(message.chat_id, text, **more)


def menu(n):
    return InlineKeyboardMarkup([[InlineKeyboardButton("+", callback_data=f"add:{n}")]])


def show_menu(update, context):
    say(update.message, "count 0", reply_markup=menu(0))


def press(update, context):
    query = update.callback_query
    n = int(query.data.split(":")[1]) + 1
    query.answer(f"now {n}", show_alert=n == 3)
    query.edit_message_text(f"count {n}", reply_markup=menu(n))


def photo(update, context):
    caption = f"*{context.args[0]}*"
    update.message.reply_photo(picture, caption=caption, parse_mode="MarkdownV2", quote=True)


def album(update, context):
    chat = update.message.chat
    stored = chat.send_photo(picture).photo[-1].file_id
    chat.send_media_group([InputMediaPhoto(stored, caption=caption) for caption in ("one", "two")])


def document(update, context):
    content = " ".join(context.args).encode()
    sent = update.message.chat.send_document(content, filename="notes.txt")
    stored = context.bot.get_file(sent.document.file_id)
    say(update.message, f"file: {stored.download_as_bytearray().decode()}")


def keys(update, context):
    say(update.message, "Sure?", reply_markup=ReplyKeyboardMarkup([["Yes", "No"]], resize_keyboard=True))


def chosen_key(update, context):
    say(update.message, f"You said {update.message.text}", reply_markup=ReplyKeyboardRemove())


def poll(update, context):
    update.message.chat.send_poll("What?", ["tea", "milk"], is_anonymous=False)


def vote(update, context):
    answer = update.poll_answer
    context.bot.send_message(answer.user.id, f"voted {','.join(map(str, answer.option_ids))}")


def close_poll(update, context):
    message = update.message
    closed = context.bot.stop_poll(message.chat_id, message.reply_to_message.message_id)
    counts = ", ".join(f"{option.text} {option.voter_count}" for option in closed.options)
    say(message, f"closed: {counts}")


def welcome(update, context):
    for member in update.message.new_chat_members:
        say(update.message, f"Welcome, {member.first_name}")


def mute(update, context):
    chat = update.message.chat
    chat.restrict_member(int(context.args[0]), ChatPermissions(can_send_messages=False))
    say(update.message, "muted")


def promote(update, context):
    chat, user_id = update.message.chat, int(context.args[0])
    chat.promote_member(user_id, can_pin_messages=True)
    [promoted] = [each for each in chat.get_administrators() if each.user.id == user_id]
    say(update.message, f"pins: {str(promoted.can_pin_messages).lower()}")


def name(update, context):
    message, title = update.message, context.args[0]
    bot, chat_id = context.bot, message.chat_id
    bot.set_chat_title(chat_id, title)
    bot.set_chat_description(chat_id, f"About {title}")
    bot.set_chat_photo(chat_id, picture)
    message.pin()
    now = bot.get_chat(chat_id)
    photo = "photo" if now.photo else "no photo"
    say(message, f"{now.title}, {now.description}, {photo}, {now.pinned_message.text}")


def ban(update, context):
    chat, user_id = update.message.chat, int(context.args[0])
    try:
        chat.ban_member(user_id)
        say(update.message, chat.get_member(user_id).status)
    except BadRequest as error:
        # The library removes the prefix and capitalizes the rest.
        say(update.message, f"Bad Request: {error.message[0].lower()}{error.message[1:]}")


def order(update, context):
    say(update.message, "How many?")
    return COUNT


def ordered_count(update, context):
    if not update.message.text.isdigit():
        say(update.message, "A number, please.")
        return COUNT
    context.user_data["count"] = update.message.text
    say(update.message, "To which city?")
    return CITY


def ordered_city(update, context):
    say(update.message, f"{context.user_data['count']} to {update.message.text}")
    return ConversationHandler.END


def inline(update, context):
    query = update.inline_query
    text = InputTextMessageContent("count 0")
    results = [
        InlineQueryResultArticle(str(by), f"{query.query} {by}", text, reply_markup=menu(0)) for by in (1, 2)
    ]
    query.answer(results, cache_time=300)


def chosen(update, context):
    result = update.chosen_inline_result
    context.bot.send_message(result.from_user.id, f"chose {result.result_id}")


def create_updater():
    root = os.environ["API_ROOT"]
    # The default limit of 5 s is too short for a busy machine.
    request = Request(con_pool_size=8, connect_timeout=60, read_timeout=60)
    bot = Bot(os.environ["BOT_TOKEN"], f"{root}/bot", f"{root}/file/bot", request)
    updater = Updater(bot=bot)
    words = Filters.text & ~Filters.command
    conversation = ConversationHandler(
        entry_points=[CommandHandler("order", order)],
        states={COUNT: [MessageHandler(words, ordered_count)], CITY: [MessageHandler(words, ordered_city)]},
        fallbacks=[],
    )
    commands = {
        **{"menu": show_menu, "photo": photo, "album": album, "file": document, "keys": keys},
        **{"poll": poll, "close": close_poll, "mute": mute, "promote": promote, "name": name, "ban": ban},
    }
    handlers = [
        conversation,
        *(CommandHandler(command, run) for command, run in commands.items()),
        MessageHandler(Filters.regex("^(Yes|No)$"), chosen_key),
        MessageHandler(Filters.status_update.new_chat_members, welcome),
        CallbackQueryHandler(press),
        InlineQueryHandler(inline),
        ChosenInlineResultHandler(chosen),
        PollAnswerHandler(vote),
    ]
    for handler in handlers:
        updater.dispatcher.add_handler(handler)
    updater.dispatcher.add_error_handler(
        lambda update, context: print(f"failed: {context.error!r}", flush=True)
    )
    return updater


def main():
    updater = create_updater()
    port = os.environ.get("HOOK_PORT")
    if port is None:
        updater.start_polling(timeout=1, allowed_updates=KINDS)
    else:
        updater.start_webhook(
            listen="127.0.0.1",
            port=int(port),
            url_path="hook",
            cert=os.environ["CERTIFICATE"],
            key=os.environ["CERTIFICATE_KEY"],
            allowed_updates=KINDS,
        )
    print("ready", flush=True)
    updater.idle()


main()
