/** Validates inline keyboards (behaviour §4). */
import { fail } from '../errors.js';
import { limits } from '../limits.js';

interface Button {
  readonly text: string;
  readonly callback_data?: string | undefined;
  readonly url?: string | undefined;
}

type Rows = ReadonlyArray<readonly Button[]>;

export type StoredButton = { text: string; callback_data: string } | { text: string; url: string };

/**
 * Returns the keyboard to store, without empty rows; null if no button is left. Errors: `button_text_empty`,
 * `button_data_invalid`, `button_type_invalid` (a button without action), `keyboard_too_large`.
 */
export function checkKeyboard(rows: Rows | undefined): { inline_keyboard: StoredButton[][] } | null {
  const kept = (rows ?? []).filter((row) => row.length > 0);
  if (kept.length === 0) return null;
  if (kept.reduce((sum, row) => sum + row.length, 0) > limits.keyboard_buttons_max)
    fail('keyboard_too_large');
  const bytes = kept.flat().reduce((sum, { text, url = '' }) => sum + Buffer.byteLength(text + url), 0);
  if (bytes > limits.keyboard_bytes_max) fail('keyboard_too_large');
  return {
    inline_keyboard: kept.map((row) =>
      row.map(({ text, callback_data, url }) => {
        if (text.trim() === '') fail('button_text_empty');
        if (callback_data !== undefined) {
          const bytes = Buffer.byteLength(callback_data);
          if (bytes < 1 || bytes > limits.callback_data_bytes_max) fail('button_data_invalid');
          return { text, callback_data };
        }
        if (url === undefined || !/^(https?|tg):\/\/\S+$/i.test(url)) return fail('button_type_invalid');
        return { text, url };
      }),
    ),
  };
}
