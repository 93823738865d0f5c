/**
 * Defines the buttons of the management bot. A button's data begin with a format version. A press is checked like any
 * other call, so knowing the data gives nobody additional rights.
 */
import type { InlineButton, InlineKeyboard } from '../store/core/codec.js';

/** The version of the data format. Increase it when a change makes old buttons unreadable. */
const version = '1';

export const pages = {
  m: 'menu',
  e: 'edit',
  k: 'token',
  i: 'issue',
  n: 'name',
  d: 'description',
  s: 'short_description',
  w: 'writers',
  q: 'inline',
  g: 'transfer',
  x: 'delete',
} as const;
export type PageKey = keyof typeof pages;

export type Press =
  /** Shows page `number` of the list of bots. When the person chooses a bot, shows the page `page` of this bot. */
  | { readonly ask: 'list'; readonly page: PageKey; readonly number: number }
  | { readonly ask: 'page'; readonly page: PageKey; readonly bot: number }
  | { readonly ask: 'show_token'; readonly bot: number }
  /** Asks whether to make an important change. The question expires at `until`, a Unix time in seconds. */
  | { readonly ask: 'issue' | 'delete'; readonly bot: number; readonly until: number }
  | { readonly ask: 'transfer'; readonly bot: number; readonly to: number; readonly until: number }
  /** Sets or removes a text. `language` is '' for the default. */
  | {
      readonly ask: 'write' | 'remove';
      readonly page: 'n' | 'd' | 's';
      readonly bot: number;
      readonly language: string;
    }
  | { readonly ask: 'writers'; readonly bot: number; readonly policy: 'all' | 'selected' | 'owner' }
  /**
   * Turns inline mode on or off, turns the feedback about chosen results on or off, or asks for the placeholder text.
   */
  | {
      readonly ask: 'inline';
      readonly bot: number;
      readonly change: 'on' | 'off' | 'hint' | 'tell' | 'quiet';
    }
  | { readonly ask: 'accept' | 'decline'; readonly bot: number }
  | { readonly ask: 'cancel' };

const forms: Readonly<Record<Press['ask'], readonly [letter: string, ...fields: string[]]>> = {
  list: ['l', 'page', 'number'],
  page: ['p', 'page', 'bot'],
  show_token: ['t', 'bot'],
  issue: ['i', 'bot', 'until'],
  delete: ['x', 'bot', 'until'],
  transfer: ['g', 'bot', 'to', 'until'],
  write: ['a', 'page', 'bot', 'language'],
  remove: ['r', 'page', 'bot', 'language'],
  writers: ['w', 'bot', 'policy'],
  inline: ['q', 'bot', 'change'],
  cancel: ['c'],
  accept: ['y', 'bot'],
  decline: ['n', 'bot'],
};

/** Encodes a press as callback data. Even with the longest ids, it fits into `limits.callback_data_bytes_max` bytes. */
export function dataOf(press: Press): string {
  const [letter, ...fields] = forms[press.ask];
  const values = press as Readonly<Record<string, unknown>>;
  const texts = fields.map((name) => {
    const value = values[name];
    return typeof value === 'number' ? value.toString(36) : value;
  });
  return [version, letter, ...texts].join(':');
}

function readField(ask: string, name: string, text: string): string | number | undefined {
  const isText = ask === 'write' || ask === 'remove';
  if (name === 'language') return text;
  if (name === 'page') return (isText ? /^[nds]$/.test(text) : Object.hasOwn(pages, text)) ? text : undefined;
  if (name === 'policy') return /^(all|selected|owner)$/.test(text) ? text : undefined;
  if (name === 'change') return /^(on|off|hint|tell|quiet)$/.test(text) ? text : undefined;
  return /^[0-9a-z]{1,9}$/.test(text) ? Number.parseInt(text, 36) : undefined;
}

/** Parses callback data. Returns null for malformed data and for data of another format version. */
export function readPress(data: string): Press | null {
  const [form, letter, ...parts] = data.split(':');
  const [ask, [, ...fields]] = Object.entries(forms).find(([, [each]]) => each === letter) ?? ['', ['']];
  if (form !== version || ask === '') return null;
  const values = fields.map((name, i) => [name, readField(ask, name, parts[i] ?? '')] as const);
  if (values.some(([, value]) => value === undefined)) return null;
  const press = { ask, ...Object.fromEntries(values) } as Press;
  return dataOf(press) === data ? press : null;
}

export const button = (text: string, press: Press): InlineButton => ({ text, callback_data: dataOf(press) });

export const rowsOf = (...rows: ReadonlyArray<readonly InlineButton[]>): InlineKeyboard => ({
  inline_keyboard: rows.filter((row) => row.length > 0),
});
