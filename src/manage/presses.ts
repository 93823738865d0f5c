/** Handles presses of buttons. A button's data give no rights: every operation checks who owns the bot now. */
import { languages } from '../rules/identity_texts.js';
import { button, type Press, readPress, rowsOf } from './buttons.js';
import {
  cancelRow,
  inlinePage,
  listScreen,
  openPage,
  textPages,
  textsOf,
  valuesOf,
  writersText,
} from './pages.js';
import { nothing } from './talk.js';
import type { ManageTexts } from './texts.js';
import { languageNames } from './texts.js';
import type { Reply, Turn } from './turn.js';

export const languageIn = (t: ManageTexts, language: string): string =>
  languages.find((known) => known === language) ? languageNames[language as 'en'] : t.default_language;

const tooOld: Reply = { alert: { key: 'old_button' } };
const expired: Reply = { alert: { key: 'expired' } };

/** Handles a press. Throws the errors of the operations that it starts. */
export async function onPress(turn: Turn, data: string): Promise<Reply> {
  const press = readPress(data);
  if (press === null) return tooOld;
  if ('until' in press && press.until < turn.now) return expired;
  // A press that opens a list or another page ends the bot's open question.
  const left = turn.talk.at === 'nothing' ? undefined : nothing;
  switch (press.ask) {
    case 'list':
      return { screen: await listScreen(turn, press.page, press.number), next: left };
    case 'page':
      return { next: left, ...(await openPage(turn, press.page, press.bot)) };
    case 'cancel':
      return { screen: { key: 'cancelled' }, next: left };
    case 'show_token':
      return showToken(turn, press.bot);
    case 'issue':
      return issueToken(turn, press.bot);
    case 'write':
      return askText(turn, press);
    case 'remove':
      return removeText(turn, press);
    case 'writers':
      return setWriters(turn, press);
    case 'inline':
      return setInline(turn, press);
    case 'transfer':
      return transfer(turn, press.bot, press.to);
    case 'accept':
    case 'decline':
      return answerOffer(turn, press.ask, press.bot);
    case 'delete':
      return remove(turn, press.bot);
  }
}

/**
 * Shows the bot's token in a message. The token is not part of the stored message. The operation checks the owner and
 * writes to the audit log.
 */
async function showToken(turn: Turn, id: number): Promise<Reply> {
  const bot = await turn.store.bots.owned(turn.user.id, id);
  await turn.under('token').bots.token(turn.user.id, id);
  return { also: { key: 'token_shown', values: valuesOf(bot), tokenOf: id } };
}

async function issueToken(turn: Turn, id: number): Promise<Reply> {
  const { bot } = await turn.under('issue').bots.regenerateToken(turn.user.id, id);
  const values = valuesOf(bot);
  return { screen: { key: 'issued_note', values }, also: { key: 'issued', values, tokenOf: id } };
}

type TextPress = Extract<Press, { ask: 'write' | 'remove' }>;

async function askText(turn: Turn, { page, bot: id, language }: TextPress): Promise<Reply> {
  const { t, user, store } = turn;
  const bot = await store.bots.owned(user.id, id);
  const what = textPages[page];
  const known = languages.find((one) => one === language) ?? '';
  const current = (await textsOf(store, bot, what))[known];
  const removing = { ask: 'remove', page, bot: id, language: known } as const;
  return {
    also: {
      key: `ask_${what}`,
      values: { ...valuesOf(bot), language: languageIn(t, known), current: current ?? t.nothing_set },
      keyboard: rowsOf(current === undefined ? [] : [button(t.button_remove_text, removing)], cancelRow(t)),
    },
    next: { at: 'text', bot: id, what, language: known },
  };
}

async function removeText(turn: Turn, { page, bot: id, language }: TextPress): Promise<Reply> {
  const { t, user, under } = turn;
  const texts = { [textPages[page]]: { [language]: '' } };
  const bot = await under('remove_text').bots.setOwnTexts(user.id, id, texts);
  const values = { ...valuesOf(bot), language: languageIn(t, language) };
  return { screen: { key: 'text_removed', values }, next: nothing };
}

async function setWriters(
  turn: Turn,
  { bot: id, policy }: Extract<Press, { ask: 'writers' }>,
): Promise<Reply> {
  const { t, user, store, under } = turn;
  const bot = await store.bots.owned(user.id, id);
  if (policy === 'selected') {
    return {
      also: { key: 'ask_writers', values: valuesOf(bot), keyboard: rowsOf(cancelRow(t)) },
      next: { at: 'writers', bot: id },
    };
  }
  await under('writers').bots.setWriteAccess(user.id, id, policy, []);
  const values = { ...valuesOf(bot), writers: await writersText(turn, bot) };
  return { screen: { key: 'writers_set', values }, next: nothing };
}

async function setInline(turn: Turn, { bot: id, change }: Extract<Press, { ask: 'inline' }>): Promise<Reply> {
  const { t, user, store, under } = turn;
  const bot = await store.bots.owned(user.id, id);
  if (change === 'hint')
    return {
      also: { key: 'ask_placeholder', values: valuesOf(bot), keyboard: rowsOf(cancelRow(t)) },
      next: { at: 'placeholder', bot: id },
    };
  const { placeholder, feedback } = bot.inline ?? { placeholder: '', feedback: false };
  const told = change === 'tell' ? true : change === 'quiet' ? false : feedback;
  const mode = change === 'off' ? null : { placeholder, feedback: told };
  const changed = await under('inline').bots.setInlineMode(user.id, id, mode);
  return { screen: inlinePage(turn, changed), next: nothing };
}

/**
 * Transfers a bot, or offers the transfer. The button contains the recipient's id, because the username may move to
 * another person. Only the operation checks that the person owns the bot. A check in this function would fail when a
 * successful press is handled again, because the bot then has a new owner.
 */
async function transfer(turn: Turn, id: number, to: number): Promise<Reply> {
  const { user, store, under } = turn;
  const [bot, recipient] = await Promise.all([store.bots.find(id), store.users.find(to)]);
  if (bot === null || !recipient?.username) return tooOld;
  const done = await under('transfer').bots.transfer(user.id, id, recipient.username);
  const values = { ...valuesOf(bot), recipient: recipient.username };
  return { screen: { key: done ? 'transferred' : 'transfer_offered', values }, next: nothing };
}

/** Does not check whether the bot is still offered to this person, because the operation checks it. */
async function answerOffer(turn: Turn, ask: 'accept' | 'decline', id: number): Promise<Reply> {
  const { user, store, under } = turn;
  const values = { username: (await store.bots.find(id))?.username ?? String(id) };
  if (ask === 'accept') await under('accept').bots.acceptTransfer(user.id, id);
  else await under('decline').bots.withdrawTransfer(user.id, id);
  return { screen: { key: ask === 'accept' ? 'offer_accepted' : 'offer_declined', values } };
}

async function remove(turn: Turn, id: number): Promise<Reply> {
  const { user, store, under } = turn;
  // An earlier attempt to handle this press may already have deleted the bot. The reply then shows the bot's id.
  const username = (await store.bots.find(id))?.username ?? String(id);
  await under('delete').bots.remove(user.id, id);
  return { screen: { key: 'deleted', values: { username } }, next: nothing };
}
