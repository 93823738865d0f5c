/** Validates menu buttons of bots. */
import { fail } from '../errors.js';
import { pageOf } from './keyboard.js';
import { ruleLimits as limits } from './limits.js';
import { isLongerThan } from './text.js';

export type MenuButton =
  | { readonly type: 'commands' }
  | { readonly type: 'web_app'; readonly text: string; readonly web_app: { readonly url: string } };

export interface MenuButtonInput {
  readonly type: 'default' | 'commands' | 'web_app';
  readonly text?: string | undefined;
  readonly web_app?: { readonly url: string } | undefined;
}

/**
 * Returns the menu button to store, with known fields only. Returns null for the type `default`. Errors:
 * `button_text_invalid`, `button_url_invalid`.
 */
export function checkMenuButton({ type, text = '', web_app }: MenuButtonInput): MenuButton | null {
  if (type === 'default') return null;
  if (type === 'commands') return { type };
  const words = text.trim();
  if (words === '' || isLongerThan(words, limits.menu_button_text_length_max)) fail('button_text_invalid');
  const url = pageOf(web_app?.url ?? '', /^https:/i);
  if (Buffer.byteLength(url) > limits.menu_button_url_bytes_max) fail('button_url_invalid');
  return { type, text: words, web_app: { url } };
}
