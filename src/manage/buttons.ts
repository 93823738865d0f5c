/**
 * Buttons of the management bot. Their data begins with a format version. A press is checked like any other call, so
 * the data grants nothing.
 */
import type { InlineButton, InlineKeyboard } from '../store/core/codec.js';

/** Increased when old buttons can no longer be read. */
const version = '1';

/** Pages about one bot. A list of bots opens the chosen bot on one of these pages. */
export const pages = {
  m: 'menu',
  e: 'edit',
  k: 'token',
  i: 'issue',
  n: 'name',
  d: 'description',
  s: 'short_description',
  w: 'writers',
  g: 'transfer',
  x: 'delete',
} as const;
export type PageKey = keyof typeof pages;

/** The action of a button. */
export type Press =
  /** Shows page `number` of the bot list, which opens `page` of the chosen bot. */
  | { readonly ask: 'list'; readonly page: PageKey; readonly number: number }
  | { readonly ask: 'page'; readonly page: PageKey; readonly bot: number }
  | { readonly ask: 'show_token'; readonly bot: number }
  /** `until`: Unix time in seconds after which the question has expired */
  | { readonly ask: 'issue' | 'delete'; readonly bot: number; readonly until: number }
  | { readonly ask: 'transfer'; readonly bot: number; readonly to: number; readonly until: number }
  /** Sets or removes a text; `language` is '' for the default. */
  | {
      readonly ask: 'write' | 'remove';
      readonly page: 'n' | 'd' | 's';
      readonly bot: number;
      readonly language: string;
    }
  | { readonly ask: 'writers'; readonly bot: number; readonly policy: 'all' | 'selected' | 'owner' }
  /** Answers the offer of a bot. */
  | { readonly ask: 'accept' | 'decline'; readonly bot: number }
  | { readonly ask: 'cancel' };

const verbs = {
  ...{ list: 'l', page: 'p', show_token: 't', issue: 'i', delete: 'x', transfer: 'g' },
  ...{ write: 'a', remove: 'r', writers: 'w', cancel: 'c' },
  ...{ accept: 'y', decline: 'n' },
} as const satisfies Record<Press['ask'], string>;

const number = (value: number) => value.toString(36);

function partsOf(press: Press): readonly string[] {
  switch (press.ask) {
    case 'list':
      return [press.page, number(press.number)];
    case 'page':
      return [press.page, number(press.bot)];
    case 'show_token':
    case 'accept':
    case 'decline':
      return [number(press.bot)];
    case 'issue':
    case 'delete':
      return [number(press.bot), number(press.until)];
    case 'transfer':
      return [number(press.bot), number(press.to), number(press.until)];
    case 'write':
    case 'remove':
      return [press.page, number(press.bot), press.language];
    case 'writers':
      return [number(press.bot), press.policy];
    case 'cancel':
      return [];
  }
}

/** The callback data of a button: at most limits.callback_data_bytes_max bytes for any ids. */
export const dataOf = (press: Press): string => [version, verbs[press.ask], ...partsOf(press)].join(':');

const isPage = (text: string | undefined): text is PageKey =>
  text !== undefined && Object.hasOwn(pages, text);
const readNumber = (text: string | undefined): number =>
  text !== undefined && /^[0-9a-z]{1,9}$/.test(text) ? Number.parseInt(text, 36) : Number.NaN;

/** Parses callback data. Null for data of another version or form. */
export function readPress(data: string): Press | null {
  const [form, verb, ...parts] = data.split(':');
  if (form !== version) return null;
  const press = read(verb, parts);
  return press !== null && dataOf(press) === data ? press : null;
}

function read(verb: string | undefined, parts: readonly string[]): Press | null {
  const [first, second = '', third] = parts;
  const bot = readNumber(first);
  switch (verb) {
    case verbs.list:
      return isPage(first) ? { ask: 'list', page: first, number: readNumber(second) } : null;
    case verbs.page:
      return isPage(first) ? { ask: 'page', page: first, bot: readNumber(second) } : null;
    case verbs.show_token:
      return { ask: 'show_token', bot };
    case verbs.accept:
      return { ask: 'accept', bot };
    case verbs.decline:
      return { ask: 'decline', bot };
    case verbs.issue:
    case verbs.delete:
      return { ask: verb === verbs.issue ? 'issue' : 'delete', bot, until: readNumber(second) };
    case verbs.transfer:
      return { ask: 'transfer', bot, to: readNumber(second), until: readNumber(third) };
    case verbs.write:
    case verbs.remove: {
      if (first !== 'n' && first !== 'd' && first !== 's') return null;
      const ask = verb === verbs.write ? 'write' : 'remove';
      return { ask, page: first, bot: readNumber(second), language: third ?? '' };
    }
    case verbs.writers:
      return second === 'all' || second === 'selected' || second === 'owner'
        ? { ask: 'writers', bot, policy: second }
        : null;
    case verbs.cancel:
      return { ask: 'cancel' };
    default:
      return null;
  }
}

export const button = (text: string, press: Press): InlineButton => ({ text, callback_data: dataOf(press) });

export const rowsOf = (...rows: ReadonlyArray<readonly InlineButton[]>): InlineKeyboard => ({
  inline_keyboard: rows.filter((row) => row.length > 0),
});
