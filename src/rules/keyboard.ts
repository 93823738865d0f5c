/** Validates inline keyboards and reply keyboards (behaviour §4). */
import { fail } from '../errors.js';
import { ruleLimits as limits } from './limits.js';
import { isLongerThan } from './text.js';

/**
 * A button as bots send it. If the button has several actions, only the first action in the order of `actionOf` is
 * used.
 */
export interface ButtonInput {
  readonly text: string;
  readonly callback_data?: string | undefined;
  readonly url?: string | undefined;
  readonly login_url?: { readonly url: string } | undefined;
  readonly web_app?: { readonly url: string } | undefined;
  readonly copy_text?: { readonly text: string } | undefined;
  readonly switch_inline_query?: string | undefined;
  readonly switch_inline_query_current_chat?: string | undefined;
  readonly switch_inline_query_chosen_chat?: { readonly query?: string | undefined } | undefined;
  readonly style?: string | undefined;
}

type Rows = ReadonlyArray<readonly ButtonInput[]>;

/** A button in its stored form, with exactly one action. */
export type StoredButton = { text: string; style?: string } & ReturnType<typeof actionOf>;

/**
 * Returns a link with its scheme. Adds `http` to a link without a scheme, as in `t.me/name`. Error:
 * `button_type_invalid`.
 */
function linkOf(url: string): string {
  if (/^(https?|tg):\/\/\S+$/i.test(url)) return url;
  return /^[\w-]+(\.[\w-]+)+(:\d{1,5})?([/?#]\S*)?$/.test(url)
    ? `http://${url}`
    : fail('button_type_invalid');
}

/** Returns the address of a page. Error: `button_url_invalid`. */
export const pageOf = (url: string, scheme: RegExp): string =>
  scheme.test(url) && URL.canParse(url) ? url : fail('button_url_invalid');

const query = (text: string): string =>
  Buffer.byteLength(text) > limits.button_query_bytes_max ? fail('button_query_invalid') : text;

/** Returns only the supported fields, because other fields are not stored. */
function actionOf(button: ButtonInput) {
  const { callback_data, url, login_url, web_app, copy_text } = button;
  if (callback_data !== undefined) {
    const bytes = Buffer.byteLength(callback_data);
    if (bytes < 1 || bytes > limits.callback_data_bytes_max) fail('button_data_invalid');
    return { callback_data };
  }
  if (url !== undefined) return { url: linkOf(url) };
  if (login_url !== undefined) return { login_url: { url: pageOf(linkOf(login_url.url), /^https?:/i) } };
  if (web_app !== undefined) return { web_app: { url: pageOf(web_app.url, /^https:/i) } };
  if (copy_text !== undefined) {
    if (copy_text.text === '' || isLongerThan(copy_text.text, limits.copy_text_length_max))
      fail('button_copy_text_invalid');
    return { copy_text: { text: copy_text.text } };
  }
  const { switch_inline_query, switch_inline_query_current_chat, switch_inline_query_chosen_chat } = button;
  if (switch_inline_query !== undefined) return { switch_inline_query: query(switch_inline_query) };
  if (switch_inline_query_current_chat !== undefined)
    return { switch_inline_query_current_chat: query(switch_inline_query_current_chat) };
  if (switch_inline_query_chosen_chat !== undefined)
    return { switch_inline_query_chosen_chat: { query: query(switch_inline_query_chosen_chat.query ?? '') } };
  return fail('button_type_invalid');
}

function storedButton(button: ButtonInput): StoredButton {
  const { text, style } = button;
  if (text === '') fail('button_text_empty');
  const stored = { text, ...actionOf(button) };
  return style === undefined ? stored : { ...stored, style };
}

const sizeOf = ({ text, url, login_url, web_app, copy_text }: ButtonInput): number =>
  Buffer.byteLength(text + (url ?? login_url?.url ?? web_app?.url ?? copy_text?.text ?? ''));

/**
 * Returns the keyboard without empty rows, or null if no button is left. Errors: `button_text_empty`,
 * `button_data_invalid`, `button_url_invalid`, `button_copy_text_invalid`, `button_query_invalid`,
 * `button_type_invalid` (a button without a known action), `keyboard_too_large`.
 */
export function checkKeyboard(rows: Rows | undefined): { inline_keyboard: StoredButton[][] } | null {
  const kept = (rows ?? []).filter((row) => row.length > 0);
  if (kept.length === 0) return null;
  if (kept.reduce((sum, row) => sum + row.length, 0) > limits.keyboard_buttons_max)
    fail('keyboard_too_large');
  if (kept.flat().reduce((sum, button) => sum + sizeOf(button), 0) > limits.keyboard_bytes_max)
    fail('keyboard_too_large');
  return { inline_keyboard: kept.map((row) => row.map(storedButton)) };
}

/**
 * The kinds of data that a reply button may request from the person. The application never shares such data, and tells
 * the person that it does not.
 */
export const shareKinds = ['contact', 'location', 'poll', 'users', 'chat', 'web_app'] as const;

export interface ReplyButton {
  readonly text: string;
  readonly request?: (typeof shareKinds)[number];
}

/**
 * A reply keyboard as bots send it. It shows buttons below the composer, removes the buttons, or asks the person to
 * reply.
 */
export interface ReplyKeyboard {
  readonly keyboard?: readonly (readonly ReplyButton[])[];
  readonly remove_keyboard?: true;
  readonly force_reply?: true;
  readonly is_persistent?: true;
  readonly resize_keyboard?: true;
  readonly one_time_keyboard?: true;
  readonly input_field_placeholder?: string;
  /** True if the keyboard is only for the people who are mentioned, and for the sender of the replied-to message. */
  readonly selective?: true;
}

export type ReplyButtonInput = string | { readonly text: string; readonly [key: string]: unknown };

export interface ReplyKeyboardInput {
  readonly keyboard?: ReadonlyArray<readonly ReplyButtonInput[]> | undefined;
  readonly remove_keyboard?: boolean | undefined;
  readonly force_reply?: boolean | undefined;
  readonly is_persistent?: boolean | undefined;
  readonly resize_keyboard?: boolean | undefined;
  readonly one_time_keyboard?: boolean | undefined;
  readonly input_field_placeholder?: string | undefined;
  readonly selective?: boolean | undefined;
}

const shareFields: Readonly<Record<string, ReplyButton['request']>> = {
  request_users: 'users',
  request_chat: 'chat',
  request_contact: 'contact',
  request_location: 'location',
  request_poll: 'poll',
  web_app: 'web_app',
};

function replyButtonOf(given: ReplyButtonInput): ReplyButton {
  const button = typeof given === 'string' ? { text: given } : given;
  if (button.text === '') fail('reply_button_text_empty');
  const [, request] = Object.entries(shareFields).find(([name]) => name in button) ?? [];
  return request === undefined ? { text: button.text } : { text: button.text, request };
}

/** Returns the rows to store, without empty rows. Errors: `reply_button_text_empty`, `keyboard_too_large`. */
function replyRows(rows: ReplyKeyboardInput['keyboard'] = []): ReplyButton[][] {
  const kept = rows.filter((row) => row.length > 0);
  if (kept.reduce((sum, row) => sum + row.length, 0) > limits.keyboard_buttons_max)
    fail('keyboard_too_large');
  const stored = kept.map((row) => row.map(replyButtonOf));
  const bytes = stored.flat().reduce((sum, { text }) => sum + Buffer.byteLength(text), 0);
  return bytes > limits.keyboard_bytes_max ? fail('keyboard_too_large') : stored;
}

/**
 * Returns the stored form of a reply keyboard: rows of buttons, the removal of a keyboard, or a forced reply. Returns
 * null if the parameter is none of these. Errors: `reply_button_text_empty`, `keyboard_too_large`,
 * `placeholder_too_long`.
 */
export function checkReplyKeyboard(given: ReplyKeyboardInput): ReplyKeyboard | null {
  const rows = replyRows(given.keyboard);
  const selective = given.selective ? { selective: true as const } : {};
  if (rows.length === 0 && given.remove_keyboard) return { remove_keyboard: true, ...selective };
  if (rows.length === 0 && !given.force_reply) return null;
  const { input_field_placeholder: placeholder = '' } = given;
  if (isLongerThan(placeholder, limits.keyboard_placeholder_length_max)) fail('placeholder_too_long');
  const shown = {
    ...selective,
    ...(placeholder === '' ? {} : { input_field_placeholder: placeholder }),
  };
  if (rows.length === 0) return { force_reply: true, ...shown };
  return {
    keyboard: rows,
    ...(given.is_persistent ? { is_persistent: true } : {}),
    ...(given.resize_keyboard ? { resize_keyboard: true } : {}),
    ...(given.one_time_keyboard ? { one_time_keyboard: true } : {}),
    ...shown,
  };
}
