/** Handles a message to the management bot. It is a command, or an answer to the bot's last question. */

import { descriptionText, nameText, shortDescriptionText } from '../actions/identity_texts.js';
import { ApiError } from '../errors.js';
import { parseWith } from '../server/method.js';
import { botName, botUsername, inlinePlaceholder } from '../wire/fields.js';
import { button, rowsOf } from './buttons.js';
import { type CommandName, commandLines, commands, readCommand } from './commands.js';
import { cancelRow, inlinePage, listOrPage, untilOf, valuesOf, writersText } from './pages.js';
import { languageIn } from './presses.js';
import { nothing, type Talk } from './talk.js';
import type { TextKey } from './texts.js';
import type { Reply, Turn } from './turn.js';

/** Handles a message. `text` is null for a message without text. Throws the errors of the operations that it starts. */
export async function onMessage(turn: Turn, text: string | null, username: string): Promise<Reply> {
  const command = text === null ? null : readCommand(text, username);
  if (command !== null) return onCommand(turn, command);
  if (turn.talk.at === 'nothing') return { screen: { key: 'unknown' } };
  if (text === null) return { screen: { key: 'text_expected' } };
  return onAnswer(turn, turn.talk, text);
}

async function onCommand(turn: Turn, name: string): Promise<Reply> {
  const { t } = turn;
  switch (name) {
    case 'start':
    case 'help':
      return { screen: { key: name, values: { commands: commandLines(t) } }, next: nothing };
    case 'cancel':
      return {
        screen: { key: turn.talk.at === 'nothing' ? 'nothing_to_cancel' : 'cancelled' },
        next: nothing,
      };
    case 'newbot':
      return { screen: { key: 'ask_new_name', keyboard: rowsOf(cancelRow(t)) }, next: { at: 'new_name' } };
    default: {
      const page = Object.hasOwn(commands, name) ? commands[name as CommandName] : null;
      // Any command, even an unknown one, ends the bot's open question.
      if (page === null) return { screen: { key: 'unknown' }, next: nothing };
      return { next: nothing, ...(await listOrPage(turn, page)) };
    }
  }
}

async function onAnswer(turn: Turn, talk: Talk, text: string): Promise<Reply> {
  switch (talk.at) {
    case 'new_name': {
      const name = parseWith(botName, text);
      const asked = {
        key: 'ask_new_username',
        values: { name },
        keyboard: rowsOf(cancelRow(turn.t)),
      } as const;
      return { screen: asked, next: { at: 'new_username', name } };
    }
    case 'new_username':
      return createBot(turn, talk.name, text);
    case 'text':
      return setText(turn, talk, text);
    case 'writers':
      return setWriters(turn, talk.bot, text);
    case 'placeholder':
      return setPlaceholder(turn, talk.bot, text);
    case 'transfer':
      return askTransfer(turn, talk.bot, text);
    case 'nothing':
      return { screen: { key: 'unknown' } };
  }
}

const withoutAt = (text: string) => text.trim().replace(/^@/, '');

async function createBot(turn: Turn, name: string, text: string): Promise<Reply> {
  const username = parseWith(botUsername, withoutAt(text));
  try {
    const { bot } = await turn.under('create').bots.create(turn.user.id, username, name);
    const keyboard = rowsOf([button(turn.t.button_edit, { ask: 'page', page: 'e', bot: bot.id })]);
    return { screen: { key: 'created', values: valuesOf(bot), tokenOf: bot.id, keyboard }, next: nothing };
  } catch (error) {
    if (!(error instanceof ApiError) || error.kind !== 'username_taken') throw error;
    return { screen: { key: 'username_taken', values: { username } } };
  }
}

const textFields = {
  name: nameText,
  description: descriptionText,
  short_description: shortDescriptionText,
};

async function setText(
  turn: Turn,
  { bot: id, what, language }: Extract<Talk, { at: 'text' }>,
  given: string,
): Promise<Reply> {
  const { t, user, under } = turn;
  const text = parseWith(textFields[what], given);
  const bot = await under('text').bots.setOwnTexts(user.id, id, { [what]: { [language]: text } });
  const values = { ...valuesOf(bot), language: languageIn(t, language) };
  const keyboard = rowsOf([button(t.button_back, { ask: 'page', page: 'e', bot: id })]);
  return { screen: { key: text === '' ? 'text_removed' : 'text_set', values, keyboard }, next: nothing };
}

async function setWriters(turn: Turn, id: number, text: string): Promise<Reply> {
  const { user, under } = turn;
  const usernames = [
    ...new Set(
      text
        .split(/[\s,;]+/)
        .filter(Boolean)
        .map(withoutAt),
    ),
  ];
  const bot = await turn.store.bots.owned(user.id, id);
  try {
    await under('writers').bots.setWriteAccess(user.id, id, 'selected', usernames);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const unknown = await unknownOf(turn, usernames);
    if (unknown === undefined) throw error;
    return { screen: { key: 'writers_unknown', values: { username: unknown } } };
  }
  const values = { ...valuesOf(bot), writers: await writersText(turn, bot) };
  return { screen: { key: 'writers_set', values }, next: nothing };
}

async function setPlaceholder(turn: Turn, id: number, text: string): Promise<Reply> {
  const { user, store, under } = turn;
  const placeholder = parseWith(inlinePlaceholder, text);
  const { inline } = await store.bots.owned(user.id, id);
  const mode = { placeholder, feedback: inline?.feedback ?? false };
  return {
    screen: inlinePage(turn, await under('inline').bots.setInlineMode(user.id, id, mode)),
    next: nothing,
  };
}

async function unknownOf({ store }: Turn, usernames: readonly string[]): Promise<string | undefined> {
  for (const username of usernames) {
    if ((await store.users.findByUsername(username)) === null) return username;
  }
  return undefined;
}

async function askTransfer(turn: Turn, id: number, text: string): Promise<Reply> {
  const { t, user, store } = turn;
  const bot = await store.bots.owned(user.id, id);
  const refused = (key: TextKey): Reply => ({ screen: { key, keyboard: rowsOf(cancelRow(t)) } });
  const recipient = await store.users.findByUsername(withoutAt(text));
  if (!recipient?.username) return refused('transfer_unknown');
  if (recipient.id === user.id) return refused('transfer_self');
  const values = { ...valuesOf(bot), recipient: recipient.username };
  const yes = t.button_transfer_yes.replace('{recipient}', () => values.recipient);
  const press = { ask: 'transfer', bot: id, to: recipient.id, until: untilOf(turn) } as const;
  return {
    screen: { key: 'transfer_ask', values, keyboard: rowsOf([button(yes, press)], cancelRow(t)) },
    next: nothing,
  };
}
