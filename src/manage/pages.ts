/** The pages about a person's bots: the list, and one bot's pages. Every page checks that the person owns the bot. */
import { limits } from '../limits.js';
import { type Language, languages, type Texts } from '../rules/identity_texts.js';
import type { InlineButton } from '../store/core/codec.js';
import type { Bot } from '../store/core/control.js';
import { button, type PageKey, rowsOf } from './buttons.js';
import type { TextKind } from './talk.js';
import type { ManageTexts, TextKey } from './texts/en.js';
import { languageNames } from './texts.js';
import type { Reply, Screen, Turn } from './turn.js';

const listed = 8;
const perRow = 2;
/** More usernames would not fit into a message. */
const writersListed = 50;

/** When a confirmation of an important change expires, in Unix seconds. */
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

/** One page of the person's bots, to choose one for `page`. */
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

/** The reply to a command: the page of the person's only bot, or the list of bots. `/mybots` always shows the list. */
export async function listOrPage(turn: Turn, page: PageKey): Promise<Reply> {
  const [only, another] = await turn.store.bots.listOf(turn.user.id, 0, 2);
  if (page === 'm' || only === undefined || another !== undefined)
    return { screen: await listScreen(turn, page, 0) };
  return openPage(turn, page, only.id);
}

const back = (t: ManageTexts, page: PageKey, bot: number) =>
  button(t.button_back, { ask: 'page', page, bot });

function menu({ t }: Turn, bot: Bot): Screen {
  const to = (text: string, page: PageKey) => button(text, { ask: 'page', page, bot: bot.id });
  return {
    ...{ key: 'bot_page', values: valuesOf(bot) },
    keyboard: rowsOf(
      [to(t.button_token, 'k'), to(t.button_edit, 'e')],
      [to(t.button_transfer, 'g'), to(t.button_delete, 'x')],
      [button(t.button_to_list, { ask: 'list', page: 'm', number: 0 })],
    ),
  };
}

function editMenu({ t }: Turn, bot: Bot): Screen {
  const to = (text: string, page: PageKey) => button(text, { ask: 'page', page, bot: bot.id });
  return {
    ...{ key: 'edit_page', values: valuesOf(bot) },
    keyboard: rowsOf(
      [to(t.button_name, 'n'), to(t.button_description, 'd')],
      [to(t.button_short_description, 's'), to(t.button_writers, 'w')],
      [back(t, 'm', bot.id)],
    ),
  };
}

function tokenPage({ t }: Turn, bot: Bot): Screen {
  return {
    ...{ key: 'token_page', values: valuesOf(bot) },
    keyboard: rowsOf(
      [button(t.button_show_token, { ask: 'show_token', bot: bot.id })],
      [button(t.button_issue, { ask: 'page', page: 'i', bot: bot.id })],
      [back(t, 'm', bot.id)],
    ),
  };
}

function issuePage(turn: Turn, bot: Bot): Screen {
  const { t } = turn;
  return {
    ...{ key: 'issue_ask', values: valuesOf(bot) },
    keyboard: rowsOf(
      [button(t.button_issue_yes, { ask: 'issue', bot: bot.id, until: untilOf(turn) })],
      [back(t, 'k', bot.id)],
    ),
  };
}

function deletePage(turn: Turn, bot: Bot): Screen {
  const { t } = turn;
  return {
    ...{ key: 'delete_ask', values: valuesOf(bot) },
    keyboard: rowsOf(
      [button(t.button_delete_yes, { ask: 'delete', bot: bot.id, until: untilOf(turn) })],
      [back(t, 'm', bot.id)],
    ),
  };
}

/** Asks for the language of a text. Languages with a text have a check mark. */
async function languagesPage({ t, store }: Turn, page: keyof typeof textPages, bot: Bot): Promise<Screen> {
  const set = await textsOf(store, bot, textPages[page]);
  const to = (language: Language | '', name: string) =>
    button(`${set[language] === undefined ? '' : '✓ '}${name}`, {
      ask: 'write',
      page,
      bot: bot.id,
      language,
    });
  return {
    ...{ key: `choose_language_${textPages[page]}` satisfies TextKey, values: valuesOf(bot) },
    keyboard: rowsOf(
      [to('', t.button_default_language)],
      ...inRows(languages.map((language) => to(language, languageNames[language]))),
      [back(t, 'e', bot.id)],
    ),
  };
}

/** The bot's texts of one kind by language. */
export async function textsOf(store: Turn['store'], bot: Bot, what: TextKind): Promise<Texts> {
  if (what === 'name') return bot.names;
  const { description, shortDescription } = await store.bots.descriptions(bot.id);
  return what === 'description' ? description : shortDescription;
}

/** Opens a page about a bot. Errors: `bot_not_found`, `not_bot_owner`. */
export async function openPage(turn: Turn, page: PageKey, id: number): Promise<Reply> {
  const bot = await turn.store.bots.owned(turn.user.id, id);
  switch (page) {
    case 'm':
      return { screen: menu(turn, bot) };
    case 'e':
      return { screen: editMenu(turn, bot) };
    case 'k':
      return { screen: tokenPage(turn, bot) };
    case 'i':
      return { screen: issuePage(turn, bot) };
    case 'n':
    case 'd':
    case 's':
      return { screen: await languagesPage(turn, page, bot) };
    case 'w':
      return { screen: await writersPage(turn, bot) };
    case 'g':
      return {
        also: { key: 'ask_transfer', values: valuesOf(bot), keyboard: rowsOf(cancelRow(turn.t)) },
        next: { at: 'transfer', bot: bot.id },
      };
    case 'x':
      return { screen: deletePage(turn, bot) };
  }
}

/** Who may write to the bot, in words. */
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
