import { describe, expect, it } from 'vitest';
import { usernameKey, validBotUsername, validUsername } from '../../src/rules/usernames.js';

describe('validUsername', () => {
  it.each(['abc', 'a_b', 'A1b2', 'x'.repeat(32)])('validUsername accepts %s', (text) =>
    expect(validUsername(text)).toBe(true),
  );

  it.each([
    ['too short', 'ab'],
    ['too long', 'x'.repeat(33)],
    ['begins with a digit', '1ab'],
    ['begins with an underscore', '_ab'],
    ['ends in an underscore', 'abc_'],
    ['double underscore', 'a__b'],
    ['other letters', 'имя'],
    ['a letter that lower-cases to k', '\u212aab'],
    ['a hyphen', 'a-b'],
    ['an at sign', '@abc'],
    ['a line break', 'abc\n'],
    ['nothing', ''],
  ])('validUsername refuses a username: %s', (_, text) => expect(validUsername(text)).toBe(false));
});

describe('validBotUsername', () => {
  it.each(['demo_bot', 'DemoBot', 'bot', 'TETRISBOT'])('validBotUsername accepts %s', (text) => {
    expect(validBotUsername(text)).toBe(true);
  });
  it.each(['demo', 'bot_x', 'b_o_t', '1bot', 'demo__bot', `${'x'.repeat(30)}bot`])(
    'validBotUsername refuses %s',
    (text) => {
      expect(validBotUsername(text)).toBe(false);
    },
  );
});

it('usernameKey ignores the case of a username', () => {
  expect(usernameKey('Demo_Bot')).toBe('demo_bot');
  expect(usernameKey('demo_bot')).toBe('demo_bot');
});
