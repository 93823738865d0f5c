/**
 * Tests the size limits of keyboards and entities. The limits exist because one call can store a hundred copies of a
 * message.
 */
import { expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { formatText } from '../../src/rules/entities/format.js';
import { checkKeyboard } from '../../src/rules/keyboard.js';

const row = (size: number) => [[{ text: 'x'.repeat(size), callback_data: 'd' }]];

test('a keyboard has at most keyboard_bytes_max bytes of texts and links', () => {
  expect(checkKeyboard(row(limits.keyboard_bytes_max))).not.toBeNull();
  expect(() => checkKeyboard(row(limits.keyboard_bytes_max + 1))).toThrow('reply markup is too long');
  const link = { text: 'x', url: `https://example.org/${'é'.repeat(limits.keyboard_bytes_max / 2)}` };
  expect(() => checkKeyboard([[link]])).toThrow('reply markup is too long');
});

test.each([
  ['HTML', (name: string) => `<pre><code class="language-${name}">x</code></pre>`],
  ['MarkdownV2', (name: string) => `\`\`\`${name}\nx\`\`\``],
])('a code language over code_language_length_max is dropped in %s', (mode, source) => {
  const named = (length: number) => formatText(source('a'.repeat(length)), mode).entities;
  const { code_language_length_max: max } = limits;
  expect(named(max)).toEqual([{ type: 'pre', offset: 0, length: 1, language: 'a'.repeat(max) }]);
  expect(named(max + 1)).toEqual([{ type: 'pre', offset: 0, length: 1 }]);
});

test('the language of a code block is removed if it is too long, even if the caller gave the entity explicitly', () => {
  const entity = { type: 'pre', offset: 0, length: 1, language: 'a'.repeat(1_000) };
  expect(formatText('x', undefined, [entity]).entities).toEqual([{ type: 'pre', offset: 0, length: 1 }]);
});
