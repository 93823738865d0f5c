import { expect, test } from 'vitest';
import { captionContent, textContent, type Writer } from '../../src/actions/compose.js';
import { limits } from '../../src/limits.js';
import type { Store } from '../../src/store/store.js';

/** These texts mention no people, so composing them never uses the store. */
const store = {} as Store;
const writer: Writer = { id: 1, isBot: true, chat: null };
/** This long markup has no visible text, because its link is empty. */
const mark = `<a href="https://e.example/${'x'.repeat(966)}"></a>`;
const marked = (bytes: number) => ({
  parse_mode: 'HTML',
  text: `${mark.repeat(Math.floor(bytes / mark.length))}x`,
});

test('a text with too much markup is refused before parsing, even if it has only one visible character', async () => {
  const { text: most, ...mode } = marked(limits.markup_length_max - 1);
  const { text: more } = marked(limits.markup_length_max + mark.length);
  expect(textContent(store, writer, { text: most, ...mode })).toEqual({ text: 'x' });
  expect(() => textContent(store, writer, { text: more, ...mode })).toThrow('message is too long');
  expect(captionContent(store, writer, { caption: most, ...mode })).toEqual({ text: 'x' });
  expect(() => captionContent(store, writer, { caption: more, ...mode })).toThrow(
    'message caption is too long',
  );
});
