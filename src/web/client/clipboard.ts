/**
 * Copies text and creates random names, also on pages without HTTPS, where browsers lack the usual functions for this.
 */
import { t } from './words.js';

/** Copies text to the clipboard. Rejects if the browser does not allow it. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'sr-only';
  // The text field must be inside the open dialog, because text outside the dialog cannot be selected.
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  if (!done) throw new Error(t('fail_clipboard'));
}

/** Creates a random name of 128 bits. */
export function randomName(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
