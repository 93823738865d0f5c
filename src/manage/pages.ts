/**
 * Builds the pages about a person's bots: the list of bots, and the pages about one bot. Every page checks that the
 * person owns the bot.
 */

import { type Language, languages, type Texts } from '../rules/identity_texts.js';
import type { InlineButton } from '../store/core/codec.js';
import type { Bot } from '../store/core/control.js';
import { button, type PageKey, rowsOf } from './buttons.js';
import { manageLimits as limits } from './limits.js';
import type { TextKind } from './talk.js';
import type { ManageTexts, TextKey } from './texts.js';
import { languageNames } from './texts.js';
import type { Reply, Screen, Turn } from './turn.js';

const listed = 8;
const perRow = 2;
/** The maximum number of usernames in the list of people who may write to a bot. More would not fit into a message. */
const writersListed = 50;

export const untilOf = ({ now }: Turn): number => now + Math.floor(limits.manage_question_ms / 1_000);

export const textPages = {
  n: 'name',
  d: 'description',
  s: 'short_description',
} as const satisfies Record<string, TextKind>;

export const valuesOf = (bot: Bot) => ({ username: bot.username, name: bot.name });

export const cancelRow = (t: ManageTexts): InlineButton[] => [button(t.button_cancel, { ask: 'cancel' })];

function inRows(buttons: readonly InlineButton[]): InlineButton[][] {
  const rows: InlineButton[][] = [];
  for (let i = 0; i < buttons.length; i += perRow) rows.push(buttons.slice(i, i + perRow));
  return rows;
}

export async function listScreen(turn: Turn, page: PageKey, number: number): Promise<Screen> {
  const { bots } = turn.store;
  const count = await bots.countOf(turn.user.id);
  if (count === 0) return { key: 'list_empty' };
  const last = Math.ceil(count / listed) - 1;
  const at = Math.min(Math.max(0, Math.trunc(number) || 0), last);
  const shown = await bots.listOf(turn.user.id, 0, listed, at * listed);
  const chosen = shown.map((bot) => button(`@${bot.username}`, { ask: 'page', page, bot: bot.id }));
  const turns = [
    ...(at > 0 ? [button('«', { ask: 'list', page, number: at - 1 })] : []),
    ...(at < last ? [button(`${at + 2}/${last + 1} »`, { ask: 'list', page, number: at + 1 })] : []),
  ];
  return { key: 'list', keyboard: rowsOf(...inRows(chosen), turns) };
}

/**
 * Returns the reply to a command: the page of the person's only bot, or the list of bots. `/mybots` always shows the
 * list.
 */
export async function listOrPage(turn: Turn, page: PageKey): Promise<Reply> {
  const [only, another] = await turn.store.bots.listOf(turn.user.id, 0, 2);
  if (page === 'm' || only === undefined || another !== undefined)
    return { screen: await listScreen(turn, page, 0) };
  return openPage(turn, page, only.id);
}

const back = (t: ManageTexts, page: PageKey, bot: number) =>
  button(t.button_back, { ask: 'page', page, bot });

const about = (key: TextKey, bot: Bot, ...rows: readonly InlineButton[][]): Screen => ({
  key,
  values: valuesOf(bot),
  keyboard: rowsOf(...rows),
});

/** Asks for a language. Marks the languages that already have a text. */
async function languagesPage({ t, store }: Turn, page: keyof typeof textPages, bot: Bot): Promise<Screen> {
  const set = await textsOf(store, bot, textPages[page]);
  const to = (language: Language | '', name: string) =>
    button(`${set[language] === undefined ? '' : '✓ '}${name}`, {
      ask: 'write',
      page,
      bot: bot.id,
      language,
    });
  return about(
    `choose_language_${textPages[page]}`,
    bot,
    [to('', t.button_default_language)],
    ...inRows(languages.map((language) => to(language, languageNames[language]))),
    [back(t, 'e', bot.id)],
  );
}

export async function textsOf(store: Turn['store'], bot: Bot, what: TextKind): Promise<Texts> {
  if (what === 'name') return bot.names;
  const { description, shortDescription } = await store.bots.descriptions(bot.id);
  return what === 'description' ? description : shortDescription;
}

/** Shows a page about a bot. Throws `bot_not_found` or `not_bot_owner`. */
export async function openPage(turn: Turn, page: PageKey, id: number): Promise<Reply> {
  const { t } = turn;
  const bot = await turn.store.bots.owned(turn.user.id, id);
  const to = (text: string, other: PageKey) => button(text, { ask: 'page', page: other, bot: id });
  switch (page) {
    case 'm': {
      const rows = [
        [to(t.button_token, 'k'), to(t.button_edit, 'e')],
        [to(t.button_transfer, 'g'), to(t.button_delete, 'x')],
        [button(t.button_to_list, { ask: 'list', page: 'm', number: 0 })],
      ];
      return { screen: about('bot_page', bot, ...rows) };
    }
    case 'e': {
      const rows = [
        [to(t.button_name, 'n'), to(t.button_description, 'd')],
        [to(t.button_short_description, 's'), to(t.button_writers, 'w')],
        [to(t.button_inline, 'q')],
      ];
      return { screen: about('edit_page', bot, ...rows, [back(t, 'm', id)]) };
    }
    case 'k': {
      const show = button(t.button_show_token, { ask: 'show_token', bot: id });
      return { screen: about('token_page', bot, [show], [to(t.button_issue, 'i')], [back(t, 'm', id)]) };
    }
    case 'i': {
      const yes = button(t.button_issue_yes, { ask: 'issue', bot: id, until: untilOf(turn) });
      return { screen: about('issue_ask', bot, [yes], [back(t, 'k', id)]) };
    }
    case 'x': {
      const yes = button(t.button_delete_yes, { ask: 'delete', bot: id, until: untilOf(turn) });
      return { screen: about('delete_ask', bot, [yes], [back(t, 'm', id)]) };
    }
    case 'n':
    case 'd':
    case 's':
      return { screen: await languagesPage(turn, page, bot) };
    case 'w':
      return { screen: await writersPage(turn, bot) };
    case 'q':
      return { screen: inlinePage(turn, bot) };
    case 'g':
      return { also: about('ask_transfer', bot, cancelRow(t)), next: { at: 'transfer', bot: id } };
  }
}

export async function writersText({ t, store }: Turn, bot: Bot): Promise<string> {
  const { policy, usernames } = await store.bots.writeAccess(bot.id);
  if (policy !== 'selected') return policy === 'all' ? t.writers_all : t.writers_owner;
  const more = usernames.length > writersListed ? ' …' : '';
  const names = usernames.slice(0, writersListed).map((username) => `@${username}`);
  return t.writers_selected.replace('{usernames}', () => `${names.join(', ')}${more}` || t.nothing_set);
}

async function writersPage(turn: Turn, bot: Bot): Promise<Screen> {
  const { t } = turn;
  const to = (text: string, policy: 'all' | 'selected' | 'owner') =>
    button(text, { ask: 'writers', bot: bot.id, policy });
  return {
    key: 'writers_page',
    values: { ...valuesOf(bot), writers: await writersText(turn, bot) },
    keyboard: rowsOf(
      [to(t.button_writers_all, 'all')],
      [to(t.button_writers_selected, 'selected')],
      [to(t.button_writers_owner, 'owner')],
      [back(t, 'e', bot.id)],
    ),
  };
}

/** Shows whether a bot's inline mode is on, and the buttons that change this mode. */
export function inlinePage({ t }: Turn, bot: Bot): Screen {
  const to = (text: string, change: 'on' | 'off' | 'hint' | 'tell' | 'quiet') =>
    button(text, { ask: 'inline', bot: bot.id, change });
  const { inline } = bot;
  if (inline === undefined)
    return about('inline_off', bot, [to(t.button_inline_on, 'on')], [back(t, 'e', bot.id)]);
  const told = inline.feedback;
  return {
    key: 'inline_on',
    values: {
      ...valuesOf(bot),
      placeholder: inline.placeholder || t.nothing_set,
      feedback: told ? t.said_yes : t.said_no,
    },
    keyboard: rowsOf(
      [to(t.button_inline_hint, 'hint')],
      [told ? to(t.button_feedback_off, 'quiet') : to(t.button_feedback_on, 'tell')],
      [to(t.button_inline_off, 'off')],
      [back(t, 'e', bot.id)],
    ),
  };
}
