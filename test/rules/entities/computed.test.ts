import { describe, expect, it } from 'vitest';
import { computedEntities } from '../../../src/rules/entities/computed.js';
import { processorMs } from '../../support/times.js';

const found = (text: string) =>
  computedEntities(text).map(({ type, offset, length }) => `${type} ${text.slice(offset, offset + length)}`);

type Case = [text: string, ...expected: string[]];

describe('commands', () => {
  const cases: Case[] = [
    ['/start', 'bot_command /start'],
    ['/start payload', 'bot_command /start'],
    ['/start@demo_bot x', 'bot_command /start@demo_bot'],
    ['see /a, /b. (/c)', 'bot_command /a', 'bot_command /b', 'bot_command /c'],
    ['👍/a', 'bot_command /a'],
    [`/${'a'.repeat(32)}`, `bot_command /${'a'.repeat(32)}`],
    [`/${'a'.repeat(33)}`],
    ['a/b'],
    ['1/2'],
    ['/дом'],
    ['//a'],
    ['/a/b'],
    ['</a>'],
    ['/start@ab'],
    ['/'],
  ];
  it.each(cases)('commands are found in: %s', (text, ...expected) => expect(found(text)).toEqual(expected));
});

describe('mentions', () => {
  const cases: Case[] = [
    ['@abc', 'mention @abc'],
    ['hi @demo_bot!', 'mention @demo_bot'],
    [`@${'a'.repeat(32)}`, `mention @${'a'.repeat(32)}`],
    [`@${'a'.repeat(33)}`],
    ['@ab'],
    ['x@abc'],
    ['я@abc'],
    ['@abcя'],
    ['@@abc'],
    ['@abc@def'],
  ];
  it.each(cases)('mentions are found in: %s', (text, ...expected) => expect(found(text)).toEqual(expected));
});

describe('tags', () => {
  const cases: Case[] = [
    ['#tag', 'hashtag #tag'],
    ['#новости и #1tag', 'hashtag #новости', 'hashtag #1tag'],
    ['#a_b.', 'hashtag #a_b'],
    ['#_', 'hashtag #_'],
    ['#123'],
    ['#'],
    ['a#b'],
    ['##a'],
    ['$USD up', 'cashtag $USD'],
    ['$100'],
    ['$usd'],
    ['$ABCDEFGHI'],
    ['a$USD'],
  ];
  it.each(cases)('tags are found in: %s', (text, ...expected) => expect(found(text)).toEqual(expected));
});

describe('addresses', () => {
  const cases: Case[] = [
    ['http://example.com', 'url http://example.com'],
    ['HTTPS://Example.com/A?b=c#d', 'url HTTPS://Example.com/A?b=c#d'],
    ['ftp://example.com/file', 'url ftp://example.com/file'],
    ['see https://example.com/a.', 'url https://example.com/a'],
    ['(https://example.com/a)', 'url https://example.com/a'],
    ['https://example.com/a_(b)', 'url https://example.com/a_(b)'],
    ['https://example.com/a?', 'url https://example.com/a'],
    ['"https://example.com/a"', 'url https://example.com/a'],
    ['https://example.com:8080/x', 'url https://example.com:8080/x'],
    ['https://10.0.0.1/x', 'url https://10.0.0.1/x'],
    ['https://made.up.toplevel', 'url https://made.up.toplevel'],
    ['https://пример.рф/путь', 'url https://пример.рф/путь'],
    ['https://t.me/name and /cmd', 'url https://t.me/name', 'bot_command /cmd'],
    ['example.com', 'url example.com'],
    ['go to example.com/path, now', 'url example.com/path'],
    ['example.com. Next', 'url example.com'],
    ['sub.example.co.uk:80/x', 'url sub.example.co.uk:80/x'],
    ['пример.рф', 'url пример.рф'],
    ['example.com?x=@abc', 'url example.com?x=@abc'],
    ['main.ts'],
    ['index.html'],
    ['3.14'],
    ['e.g. this'],
    ['End.Start'],
    ['http://localhost'],
    ['http://1.2.3.4.5'],
    ['xhttp://'],
    ['javascript://example'],
    ['a...b'],
    ['example.com_'],
    ['me@example.com', 'email me@example.com'],
    ['write to first.last+tag@mail.example.org.', 'email first.last+tag@mail.example.org'],
    ['name.name@example.com', 'email name.name@example.com'],
    ['me@example.com@other'],
    ['http://bank.com@evil'],
    ['me@example'],
    ['me@1.2'],
  ];
  it.each(cases)('addresses are found in: %s', (text, ...expected) => expect(found(text)).toEqual(expected));
});

it('the offsets of computed entities count UTF-16 code units', () => {
  expect(computedEntities('👍 /a')).toEqual([{ type: 'bot_command', offset: 3, length: 2 }]);
});

it('finding entities takes linear time, whatever text is repeated', () => {
  const units = [
    'a.',
    '@a',
    'a@',
    '/a',
    '#1',
    '$A',
    'a:',
    '://',
    'http://',
    'a.b@',
    'a-',
    '.',
    'http://a.',
    '(',
    'x.com/)',
  ];
  for (const unit of units) {
    const text = unit.repeat(Math.ceil(8192 / unit.length));
    const took = processorMs(() => computedEntities(text));
    // Linear work takes a few milliseconds, and quadratic work would take seconds.
    expect(took, unit).toBeLessThan(250);
  }
});
