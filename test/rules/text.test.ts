import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { limits } from '../../src/limits.js';
import {
  captionText,
  codePointLength,
  isBlank,
  isLongerThan,
  isWellFormed,
  messageText,
} from '../../src/rules/text.js';

describe('codePointLength', () => {
  it.each([
    ['', 0],
    ['abc', 3],
    ['👍', 1],
    ['a👍👍b', 4],
    ['\ud83d', 1],
    ['\udc4d\ud83d', 2],
    ['\ud83d👍', 2],
  ])('the text %j has %i code points', (text, length) => expect(codePointLength(text)).toBe(length));

  it('codePointLength equals the number of characters that iteration returns, and isLongerThan agrees', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.nat({ max: 12 }), (text, max) => {
        expect(codePointLength(text)).toBe([...text].length);
        expect(isLongerThan(text, max)).toBe([...text].length > max);
      }),
    );
  });
});

describe('isWellFormed', () => {
  it.each(['', 'a', '👍', '\u0001', '\ufffd'])('isWellFormed accepts %j', (text) =>
    expect(isWellFormed(text)).toBe(true),
  );
  it.each(['\0', 'a\0b', '\ud83d', 'a\udc4d', '\udc4d\ud83d'])('isWellFormed refuses %j', (text) => {
    expect(isWellFormed(text)).toBe(false);
  });
});

describe('isBlank', () => {
  it.each([
    '',
    ' ',
    '\n\t\r',
    '\u00a0',
    '\u3000',
    '\u200b\u200d\u2060',
    '\ufeff',
    '\u3164',
    '\u2800',
    '\u00ad',
  ])('the text %j is blank', (text) => expect(isBlank(text)).toBe(true));
  it.each(['a', ' . ', '👍', '\u200b1', '-'])('the text %j is not blank', (text) =>
    expect(isBlank(text)).toBe(false),
  );
});

describe('messageText', () => {
  it.each(['', ' \n ', '\u200b'])('messageText refuses %j as empty', (text) => {
    expect(() => messageText(text)).toThrow('Bad Request: message text is empty');
  });
  it('the maximum length of a message text is counted in code points', () => {
    const longest = '👍'.repeat(limits.text_length_max);
    expect(messageText(longest)).toBe(longest);
    expect(() => messageText(`${longest}a`)).toThrow('Bad Request: message is too long');
    expect(() => messageText('a'.repeat(limits.text_length_max + 1))).toThrow(
      'Bad Request: message is too long',
    );
  });
});

describe('captionText', () => {
  it('captionText accepts an empty caption', () => {
    expect(captionText('')).toBe('');
    expect(captionText(' \u200b')).toBe('');
  });
  it('the maximum length of a caption is counted in code points', () => {
    const longest = '👍'.repeat(limits.caption_length_max);
    expect(captionText(longest)).toBe(longest);
    expect(() => captionText(`${longest}a`)).toThrow('Bad Request: message caption is too long');
  });
});
