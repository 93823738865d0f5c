import { describe, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { menuOf } from '../../src/manage/commands.js';
import { managementIdentity } from '../../src/manage/identity.js';
import { noticeMessage } from '../../src/manage/notices.js';
import type { TextKey } from '../../src/manage/texts.js';
import { fill, languageOf, texts } from '../../src/manage/texts.js';
import { contentOf } from '../../src/manage/words.js';
import { checkCommands } from '../../src/rules/commands.js';
import { languages } from '../../src/rules/identity_texts.js';
import { codePointLength } from '../../src/rules/text.js';
import { fillTokens } from '../../src/rules/token_entity.js';
import type { Notice } from '../../src/store/accounts/notices.js';

const keys = Object.keys(texts.en) as TextKey[];
const placeholders = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name).sort();

/** Texts that are the same in all languages: a name and a dash. */
const alike: TextKey[] = ['bot_name', 'nothing_set'];
/** The alphabet of each language. Placeholders, commands, usernames and names may use other letters. */
const scripts = {
  en: /[A-Za-z]/,
  uz: /[A-Za-z]/,
  ...{ ru: /\p{Script=Cyrillic}/u, tg: /\p{Script=Cyrillic}/u, tt: /\p{Script=Cyrillic}/u },
  ...{ kk: /\p{Script=Cyrillic}/u, hy: /\p{Script=Armenian}/u },
};

describe.each(languages)('%s', (language) => {
  const own = texts[language];

  test('the management bot has every text in each language, with the placeholders of the English text', () => {
    expect(Object.keys(own).sort()).toEqual([...keys].sort());
    for (const key of keys) expect([key, placeholders(own[key])]).toEqual([key, placeholders(texts.en[key])]);
  });

  test('no text in another language contains English text', () => {
    for (const key of keys.filter((one) => !alike.includes(one))) {
      expect(own[key], key).toMatch(scripts[language]);
      if (language !== 'en' && key !== 'button_token') expect(own[key], key).not.toBe(texts.en[key]);
      const words = own[key].replace(/\{\w+\}|[/@]\w+|weather_bot|bot\b|Petrel/g, '');
      if (language !== 'en' && language !== 'uz') expect(words, key).not.toMatch(/[A-Za-z]/);
    }
  });

  test('each text is within the length limit of the field that shows it', () => {
    const longest = {
      commands: menuOf(own)
        .map(({ description }) => description)
        .join('\n'),
      current: 'x'.repeat(512),
    };
    for (const key of keys) {
      expect(
        codePointLength(contentOf(own, { key, values: longest, tokenOf: 1 }).text ?? ''),
        key,
      ).toBeLessThan(limits.text_length_max);
      // A press of a button shows these texts in an alert.
      if (
        ['old_button', 'not_yours', 'expired', 'later', 'failed', 'offer_gone', 'token_blocked'].includes(key)
      )
        expect(codePointLength(own[key]), key).toBeLessThanOrEqual(limits.callback_answer_length_max);
      if (key.startsWith('button_')) expect(codePointLength(own[key]), key).toBeLessThan(48);
      expect(own[key]).toBe(own[key].trim());
    }
    expect(codePointLength(own.bot_name)).toBeLessThanOrEqual(limits.bot_name_length_max);
    expect(codePointLength(own.bot_description)).toBeLessThanOrEqual(limits.bot_description_length_max);
    expect(codePointLength(own.bot_short_description)).toBeLessThanOrEqual(
      limits.bot_short_description_length_max,
    );
    expect(checkCommands(menuOf(own))).toEqual(menuOf(own));
  });
});

test('each text of the management bot differs between languages', () => {
  for (const key of keys.filter((one) => !alike.includes(one) && one !== 'button_token'))
    expect(new Set(languages.map((language) => texts[language][key])).size, key).toBeGreaterThan(4);
});

test("the management bot answers a person in the person's language, or in English", () => {
  expect(['ru', 'RU', 'hy-AM', 'tt_RU', 'fr', null, undefined, ''].map(languageOf)).toEqual([
    ...['ru', 'ru', 'hy', 'tt', 'en', 'en', 'en', 'en'],
  ]);
});

test('the profile of the management bot has texts in every language', () => {
  const { names, descriptions, shortDescriptions, commands } = managementIdentity('petrelbot');
  for (const each of [names, descriptions, shortDescriptions])
    expect(Object.keys(each).sort()).toEqual(['', ...languages].sort());
  expect(Object.keys(commands)).toContain('default|kk');
  expect(commands['default|']).toEqual(menuOf(texts.en));
});

test('every notice has a text in every language, and each text contains all values of the notice', () => {
  const of = { bot: 7, username: 'some_bot' };
  const notices: Notice[] = [
    { kind: 'leak_found', where: 'https://example.org/a', ...of },
    { kind: 'user_token_leaked', name: 'laptop', where: '' },
    { kind: 'webhook_failing', since: 1_700_000_000, error: 'Connection timed out', ...of },
    { kind: 'webhook_removed', ...of },
    { kind: 'webhook_route_failing', route: 'pay', since: 1_700_000_000, error: 'Bad Gateway', ...of },
    { kind: 'webhook_route_removed', route: 'pay', ...of },
    { kind: 'transferred_to_you', from: 'ann', ...of },
    { kind: 'transfer_offered', from: '', ...of },
    { kind: 'transfer_accepted', to: 'bob', ...of },
    { kind: 'transfer_declined', to: 'bob', ...of },
  ];
  for (const language of languages) {
    const said = notices.map((notice) => noticeMessage(notice, language).content.text ?? '');
    for (const text of said) expect(text).not.toMatch(/[{}]|undefined/);
    expect(said.filter((text) => text.includes('@some_bot'))).toHaveLength(9);
    expect(said[0]).toContain('https://example.org/a');
    expect(said[1]).toContain(texts[language].somewhere);
    expect(said[2]).toContain('2023-11-14 22:13 UTC');
    expect(said[2]).toContain('Connection timed out');
    for (const text of said.slice(4, 6)) expect(text).toContain(' pay ');
    expect(said[4]).toContain('2023-11-14 22:13 UTC');
    expect(said[4]).toContain('Bad Gateway');
    expect(said[6]).toContain('@ann');
    // The person who offers the bot has no username, so the notice names nobody.
    expect(said[7]).toMatch(new RegExp(`^${texts[language].somebody}`));
  }
});

test('placeholders inside a value are not replaced', () => {
  expect(fill('{name} and {other}', { name: '{other}', other: '$&' })).toBe('{other} and $&');
  const content = contentOf(texts.en, {
    key: 'created',
    values: { name: '{token} {username}', username: 'a_bot' },
    tokenOf: 7,
  });
  expect(content.text).toContain('{token} {username} is now @a_bot');
  const marks = content.entities?.filter(({ type }) => type === 'bot_token') ?? [];
  expect(marks).toHaveLength(1);
  const [{ offset, length } = { offset: 0, length: 0 }] = marks;
  expect(content.text?.slice(offset, offset + length)).toBe(texts.en.token_hidden);
});

test('when a token replaces its placeholder, the offsets of later entities are adjusted', () => {
  const content = contentOf(texts.hy, {
    key: 'created',
    values: { name: 'Ա', username: 'a_bot' },
    tokenOf: 7,
  });
  const { text = '', entities = [] } = content;
  const shown = fillTokens(text, entities, new Map([[7, '7:ATOKEN-that-is-longer-than-the-words-were']]));
  const at = (of: { offset: number; length: number }) => shown.text.slice(of.offset, of.offset + of.length);
  const byType = (type: string) => shown.entities.filter((one) => one.type === type).map(at);
  expect(byType('bot_token')).toEqual(['7:ATOKEN-that-is-longer-than-the-words-were']);
  expect(byType('bot_command')).toEqual(['/mybots']);
  expect(byType('mention')).toEqual(['@a_bot']);
  expect(fillTokens(text, entities, new Map([[8, 'x']]))).toEqual({ text, entities });
});
