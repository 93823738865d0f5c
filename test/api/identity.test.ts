/** Texts by which bots present themselves, over two fronts: what is set on one is what the other shows, to each in their language. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openEvents } from '../clients/event_source.js';
import { ownPostgres, type Restartable } from '../faults/backends.js';
import {
  type Front,
  resultOf,
  type Service,
  startService,
  type TestBot,
  type TestUser,
} from '../support/service.js';
import { type Watch, watch } from './refused.js';

const languages = ['ru', 'en', 'uz', 'tg', 'hy', 'tt', 'kk'];
const kinds = [
  { key: 'name', set: 'setMyName', get: 'getMyName', max: 64, tooLong: 'name is too long' },
  {
    key: 'description',
    set: 'setMyDescription',
    get: 'getMyDescription',
    max: 512,
    tooLong: 'description is too long',
  },
  {
    key: 'short_description',
    set: 'setMyShortDescription',
    get: 'getMyShortDescription',
    max: 120,
    tooLong: 'short description is too long',
  },
] as const;

let postgres: Restartable;
let service: Service;
let seen: Watch | undefined;
let owner: TestUser;

beforeAll(async () => {
  postgres = await ownPostgres();
  service = await startService({
    fronts: 2,
    database: { url: postgres.url, drop: () => postgres.stop() },
  });
  owner = await service.newUser('olga');
  seen = await watch(service);
});
afterAll(async () => {
  await seen?.close();
  await service?.stop();
});

async function speaker(language_code?: string): Promise<TestUser> {
  const username = `reader_${randomBytes(4).toString('hex')}`;
  const body = { username, first_name: 'Reader', language_code };
  const { user, token } = await resultOf(
    service.app({ token: service.adminToken }, 'POST', '/api/admin/users', body),
  );
  return { ...user, token };
}

const frontUrl = () => (service.fronts[1] as Front).url;
const newBot = (): Promise<TestBot> => service.newBot(owner, 'named');
const call = (bot: TestBot, method: string, params: object, front = 0) =>
  resultOf(service.bot(bot, method, params as Record<string, unknown>, front));
const app = (user: TestUser, verb: string, path: string, body?: unknown, front = 1) =>
  resultOf(service.app(user, verb, path, body, front));
const refused = (bot: TestBot, method: string, params: object, text: string) =>
  (seen as Watch).refused(
    () => service.bot(bot, method, params as Record<string, unknown>),
    400,
    `Bad Request: ${text}`,
  );

describe.each(kinds)('$set and $get', ({ key, set, get, max, tooLong }) => {
  test('interface §2, §4.3: a text for each of the seven languages and a default, kept apart', async () => {
    const bot = await newBot();
    expect(await call(bot, set, { [key]: 'default' })).toBe(true);
    for (const language_code of languages) {
      // Until it has a text of its own, a language shows the default.
      expect(await call(bot, get, { language_code }, 1)).toEqual({ [key]: 'default' });
      expect(await call(bot, set, { [key]: `in ${language_code}`, language_code })).toBe(true);
    }
    for (const language_code of languages)
      expect(await call(bot, get, { language_code }, 1)).toEqual({ [key]: `in ${language_code}` });
    expect(await call(bot, get, {}, 1)).toEqual({ [key]: 'default' });
    const url = `${frontUrl()}/bot${bot.token}/${get}?language_code=kk`;
    expect(await (await fetch(url)).json()).toEqual({ ok: true, result: { [key]: 'in kk' } });
  });

  test('interface §4.3: without language_code, or with an empty one, the call is about the default', async () => {
    const bot = await newBot();
    const first = key === 'name' ? 'named' : '';
    for (const params of [{}, { language_code: '' }, { language_code: 'ru' }])
      expect(await call(bot, get, params, 1)).toEqual({ [key]: first });
    await call(bot, set, { [key]: 'one', language_code: '' });
    for (const params of [{}, { language_code: '' }, { language_code: 'ru' }])
      expect(await call(bot, get, params, 1)).toEqual({ [key]: 'one' });
  });

  test('interface §8: the longest text is taken, one code point more is refused and changes nothing', async () => {
    const bot = await newBot();
    await call(bot, set, { [key]: 'before' });
    for (const letter of ['x', 'ж', '😀', '𐎀']) {
      for (const language of [{}, { language_code: 'hy' }]) {
        await refused(bot, set, { [key]: letter.repeat(max + 1), ...language }, tooLong);
        expect(await call(bot, set, { [key]: letter.repeat(max), ...language })).toBe(true);
        expect(await call(bot, get, language, 1)).toEqual({ [key]: letter.repeat(max) });
      }
    }
    // What is not kept does not count.
    expect(await call(bot, set, { [key]: ` ${'x'.repeat(max)}\r\n` })).toBe(true);
    expect(await call(bot, get, {}, 1)).toEqual({ [key]: 'x'.repeat(max) });
  });

  test('interface §2: any other language is refused, by setter and getter, and nothing changes', async () => {
    const bot = await newBot();
    await call(bot, set, { [key]: 'before' });
    const wrong = [
      'RU',
      'Ru',
      'en-US',
      'en_US',
      'ru-RU',
      'de',
      'xx',
      'rus',
      'r',
      'ru ',
      'constructor',
      7,
      [],
    ];
    for (const language_code of wrong) {
      await refused(bot, set, { [key]: 'after', language_code }, 'invalid language code specified');
      await refused(bot, get, { language_code }, 'invalid language code specified');
    }
    expect(await call(bot, get, {}, 1)).toEqual({ [key]: 'before' });
  });

  test('behaviour §2: an empty text removes that text alone; one that shows nothing is empty', async () => {
    const bot = await newBot();
    const last = key === 'name' ? 'named' : '';
    for (const empty of ['', '  ', '\n', '\u200b\u2060']) {
      await call(bot, set, { [key]: 'default' });
      await call(bot, set, { [key]: 'russian', language_code: 'ru' });
      await call(bot, set, { [key]: 'kazakh', language_code: 'kk' });
      await call(bot, set, { [key]: empty, language_code: 'ru' });
      expect(await call(bot, get, { language_code: 'ru' }, 1)).toEqual({ [key]: 'default' });
      expect(await call(bot, get, { language_code: 'kk' }, 1)).toEqual({ [key]: 'kazakh' });
      await call(bot, set, { [key]: empty });
      expect(await call(bot, get, { language_code: 'kk' }, 1)).toEqual({ [key]: 'kazakh' });
      expect(await call(bot, get, { language_code: 'ru' }, 1)).toEqual({ [key]: last });
      expect(await call(bot, get, {}, 1)).toEqual({ [key]: last });
    }
  });

  test('interface §4.3: the text is required and must be a string', async () => {
    const bot = await newBot();
    await refused(bot, set, {}, `parameter "${key}" is required`);
    for (const value of [7, true, null, ['x'], {}])
      await refused(bot, set, { [key]: value }, `parameter "${key}" must be a string`);
    await refused(bot, set, { [key]: 'a\u0000b' }, 'strings must be encoded in UTF-8');
  });

  test('the texts of one bot are its own', async () => {
    const [bot, other] = [await newBot(), await newBot()];
    const before = await call(other, get, {}, 1);
    await call(bot, set, { [key]: 'mine' });
    expect(await call(other, get, {}, 1)).toEqual(before);
  });
});

describe('the default name, everywhere at once', () => {
  test('interface §2: getMe on the other front straight after setMyName, over and over', async () => {
    const bot = await newBot();
    for (let i = 0; i < 20; i++) {
      const [here, there] = [i % 2, (i + 1) % 2];
      // Both remember the former name.
      await Promise.all([call(bot, 'getMe', {}, here), call(bot, 'getMe', {}, there)]);
      await call(bot, 'setMyName', { name: `name ${i}` }, here);
      const [me, named] = await Promise.all([
        call(bot, 'getMe', {}, there),
        call(bot, 'getMyName', {}, there),
      ]);
      expect(me).toMatchObject({ id: bot.id, is_bot: true, first_name: `name ${i}`, username: bot.username });
      expect(named).toEqual({ name: `name ${i}` });
      expect((await call(bot, 'getMe', {}, here)).first_name).toBe(`name ${i}`);
    }
    await call(bot, 'setMyName', { name: '' });
    expect((await call(bot, 'getMe', {}, 1)).first_name).toBe('named');
  });

  test('interface §2: a name for a language changes neither getMe nor what bots see', async () => {
    const bot = await newBot();
    await call(bot, 'setMyName', { name: 'По-русски', language_code: 'ru' });
    expect((await call(bot, 'getMe', {}, 1)).first_name).toBe('named');
    const user = await speaker('ru');
    await service.openChat(user, bot);
    const sent = await call(bot, 'sendMessage', { chat_id: user.id, text: 'x' }, 1);
    expect(sent.from.first_name).toBe('named');
  });

  test('interface §2: messages carry the new name on every front, those sent before too in a direct chat', async () => {
    const bot = await newBot();
    const user = await speaker();
    await service.openChat(user, bot);
    await call(bot, 'sendMessage', { chat_id: user.id, text: 'old' }, 1);
    const path = `/api/chats/${bot.id}/messages`;
    expect((await app(user, 'GET', path))[0].from.first_name).toBe('named');
    await call(bot, 'setMyName', { name: 'Newer' });
    expect((await app(user, 'GET', path))[0].from.first_name).toBe('Newer');
    const sent = await call(bot, 'sendMessage', { chat_id: user.id, text: 'new' }, 1);
    expect(sent.from.first_name).toBe('Newer');
    const said = await app(user, 'POST', path, { text: 'hi' });
    expect(said.chat).toMatchObject({ id: bot.id, first_name: 'Newer' });
  });

  test('a poll that waits while the name changes shows the new one', async () => {
    const bot = await newBot();
    const user = await speaker();
    await service.openChat(user, bot);
    const { message_id } = await call(bot, 'sendMessage', { chat_id: user.id, text: 'asked' });
    const [started] = await call(bot, 'getUpdates', {});
    const waiting = call(bot, 'getUpdates', { offset: started.update_id + 1, timeout: 20 }, 1);
    await call(bot, 'setMyName', { name: 'While waiting' });
    await app(user, 'POST', `/api/chats/${bot.id}/messages`, {
      text: 'x',
      reply_to_message_id: message_id,
    });
    const [update] = await waiting;
    expect(update.message.reply_to_message.from.first_name).toBe('While waiting');
  });

  test('in a group a message keeps the name under which it was sent; the list of members follows', async () => {
    const bot = await newBot();
    const user = await speaker('tg');
    const group = await service.newGroup(owner, 'Team', [bot, user]);
    await call(bot, 'sendMessage', { chat_id: group, text: 'first' });
    await call(bot, 'setMyName', { name: 'Second' });
    await call(bot, 'setMyName', { name: 'Дуюм', language_code: 'tg' });
    expect((await call(bot, 'sendMessage', { chat_id: group, text: 'second' }, 1)).from.first_name).toBe(
      'Second',
    );
    const messages = await app(user, 'GET', `/api/chats/${group}/messages`);
    expect(messages.map((m: { from: { first_name: string } }) => m.from.first_name)).toEqual([
      'Second',
      'named',
    ]);
    const { items } = await app(user, 'GET', `/api/chats/${group}/members`);
    const listed = items.find((item: { user: { id: number } }) => item.user.id === bot.id);
    expect(listed.user.first_name).toBe('Дуюм');
  });
});

describe('people read in their language', () => {
  const names: Record<string, string> = { '': 'Default', ru: 'Бот', hy: 'Բոտ' };
  const readers = [
    ['ru', 'Бот'],
    ['hy', 'Բոտ'],
    ['uz', 'Default'],
    ['de', 'Default'],
    [undefined, 'Default'],
  ] as const;
  let bot: TestBot;
  beforeAll(async () => {
    bot = await newBot();
    for (const [language_code, name] of Object.entries(names)) {
      await call(bot, 'setMyName', { name, language_code });
      await call(bot, 'setMyDescription', { description: `${name} d`, language_code });
      await call(bot, 'setMyShortDescription', { short_description: `${name} s`, language_code });
    }
  });

  test.each(readers)('interface §2: reader of %s', async (language, name) => {
    const user = await speaker(language);
    const page = await app(user, 'GET', `/api/bots/${bot.username.toUpperCase()}`);
    const texts = { name, description: `${name} d`, short_description: `${name} s` };
    expect(page).toEqual({ id: bot.id, username: bot.username, ...texts });
    const started = await app(user, 'POST', `/api/bots/${bot.username}/start`, {});
    expect(started.chat.first_name).toBe(name);
    const events = await openEvents(frontUrl(), user.token);
    const { message_id } = await call(bot, 'sendMessage', { chat_id: user.id, text: 'x' });
    const told = await events.heard(
      ({ event, data }) => event === 'message' && data.message_id === message_id,
    );
    expect([told.data.from.first_name, told.data.chat.first_name]).toEqual([name, name]);
    const [listed] = await app(user, 'GET', '/api/chats');
    expect([listed.first_name, listed.last_message.from.first_name]).toEqual([name, name]);
    const chat = await app(user, 'GET', `/api/chats/${bot.id}`);
    expect([chat.first_name, chat.last_message.from.first_name]).toEqual([name, name]);
    const [newest] = await app(user, 'GET', `/api/chats/${bot.id}/messages`);
    expect([newest.from.first_name, newest.chat.first_name]).toEqual([name, name]);
    // An open stream follows a change.
    await call(bot, 'setMyName', {
      name: 'Changed',
      ...(names[language ?? ''] ? { language_code: language } : {}),
    });
    await call(bot, 'editMessageText', { chat_id: user.id, message_id, text: 'y' });
    const edited = await events.heard(({ event }) => event === 'edited_message');
    expect(edited.data.from.first_name).toBe('Changed');
    events.cut();
    await call(bot, 'setMyName', { name, ...(names[language ?? ''] ? { language_code: language } : {}) });
  });

  test('interface §2: a page without descriptions, and with commands for who looks', async () => {
    const plain = await newBot();
    const user = await speaker('ru');
    const path = `/api/bots/@${plain.username}`;
    const page = { id: plain.id, username: plain.username, name: 'named' };
    const empty = { description: '', short_description: '' };
    expect(await app(user, 'GET', path)).toEqual({ ...page, ...empty });
    const list = (command: string) => [{ command, description: 'd' }];
    await call(plain, 'setMyCommands', { commands: list('all') });
    expect(await app(user, 'GET', path)).toEqual({ ...page, ...empty, commands: list('all') });
    await call(plain, 'setMyCommands', { commands: list('ru'), language_code: 'ru' });
    expect((await app(user, 'GET', path)).commands).toEqual(list('ru'));
    expect((await app(await speaker('kk'), 'GET', path)).commands).toEqual(list('all'));
    const scope = { type: 'chat', chat_id: user.id };
    await call(plain, 'setMyCommands', { commands: list('me'), scope });
    expect((await app(user, 'GET', path)).commands).toEqual(list('me'));
    for (const name of ['no_such_bot', user.username]) {
      await (seen as Watch).refused(
        () => service.app(user, 'GET', `/api/bots/${name}`),
        404,
        'Not Found: bot not found',
      );
    }
  });
});

describe('behaviour §11: texts by language in the hands of the owner', () => {
  const own = (bot: TestBot) => `/api/me/bots/${bot.id}`;

  test('PATCH sets and removes; languages and kinds that are not named stay', async () => {
    const bot = await newBot();
    const bare = { id: bot.id, is_bot: true, username: bot.username, name: 'named' };
    expect(await app(owner, 'GET', own(bot))).toEqual({
      ...bare,
      texts: { name: {}, description: {}, short_description: {} },
    });
    const texts = {
      name: { '': 'A', ru: 'А' },
      description: { en: 'long' },
      short_description: { '': 's', tt: 'с' },
    };
    const patched = { ...bare, name: 'A', texts };
    expect(await app(owner, 'PATCH', own(bot), texts, 0)).toEqual(patched);
    expect(await app(owner, 'GET', own(bot))).toEqual(patched);
    expect((await call(bot, 'getMe', {}, 1)).first_name).toBe('A');
    expect(await call(bot, 'getMyDescription', { language_code: 'en' }, 1)).toEqual({ description: 'long' });
    const after = { ...texts, name: { ru: 'Б' } };
    expect(await app(owner, 'PATCH', own(bot), { name: { '': '', ru: 'Б' } }, 0)).toEqual({
      ...bare,
      texts: after,
    });
    expect((await call(bot, 'getMe', {}, 1)).first_name).toBe('named');
    expect(await app(owner, 'PATCH', own(bot), {})).toEqual({ ...bare, texts: after });
  });

  test('the owner sees a bot by its name in the own language', async () => {
    const speaking = await speaker('uz');
    const bot = await service.newBot(speaking, 'own');
    await app(speaking, 'PATCH', own(bot), { name: { uz: 'Oʻzbekcha' } }, 0);
    const shown = { id: bot.id, is_bot: true, username: bot.username, name: 'Oʻzbekcha' };
    expect(await app(speaking, 'GET', '/api/me/bots')).toEqual([shown]);
    expect(await app(speaking, 'GET', own(bot))).toMatchObject(shown);
  });

  test('refusals are those of the setters, and leave everything as it was', async () => {
    const bot = await newBot();
    const other = await speaker();
    await app(owner, 'PATCH', own(bot), { name: { '': 'A' }, description: { ru: 'Д' } }, 0);
    const patch = (who: TestUser, body: object, code: number, text: string, path = own(bot)) =>
      (seen as Watch).refused(() => service.app(who, 'PATCH', path, body, 1), code, text);
    const good = { name: { '': 'B' } };
    await patch(other, good, 403, 'Forbidden: not the owner of the bot');
    await patch(other, {}, 403, 'Forbidden: not the owner of the bot');
    for (const id of ['999999', owner.id, 'x'])
      await patch(owner, good, 404, 'Not Found: bot not found', `/api/me/bots/${id}`);
    for (const { key, max, tooLong } of kinds) {
      const text = '😀'.repeat(max + 1);
      await patch(owner, { ...good, [key]: { '': 'x', kk: text } }, 400, `Bad Request: ${tooLong}`);
      for (const language of ['EN', 'en-US', 'de', 'default'])
        await patch(
          owner,
          { ...good, [key]: { [language]: 'x' } },
          400,
          'Bad Request: invalid language code specified',
        );
      await patch(owner, { [key]: { ru: 7 } }, 400, `Bad Request: parameter "${key}.ru" must be a string`);
      const what = `Bad Request: parameter "${key}" must be an object of texts by language code`;
      for (const value of ['x', 7, ['x']]) await patch(owner, { [key]: value }, 400, what);
    }
  });
});

describe('methods that change nothing', () => {
  test('behaviour §4: close and logOut answer true; the bot goes on', async () => {
    const bot = await newBot();
    const user = await speaker();
    await service.openChat(user, bot);
    const [started] = await call(bot, 'getUpdates', {});
    const waiting = call(bot, 'getUpdates', { offset: started.update_id + 1, timeout: 20 }, 1);
    for (const method of ['close', 'logOut']) expect(await call(bot, method, {})).toBe(true);
    await app(user, 'POST', `/api/chats/${bot.id}/messages`, { text: 'still there?' });
    expect((await waiting)[0].message.text).toBe('still there?');
    expect((await call(bot, 'getMe', {}, 1)).id).toBe(bot.id);
  });

  test('interface §1: setMessageReaction is known and refused, whatever it is given', async () => {
    const bot = await newBot();
    const user = await speaker();
    const { message_id } = await service.openChat(user, bot);
    const reaction = [{ type: 'emoji', emoji: '❤' }];
    for (const params of [{}, { chat_id: user.id, message_id, reaction }, { chat_id: user.id, message_id }])
      await refused(bot, 'setMessageReaction', params, "bots can't set reactions");
  });
});

// The last one: what watches the stores does not outlive Postgres.
test('while Postgres is away setters answer 503 and change nothing, and what is hot is read on', async () => {
  const bot = await newBot();
  await app(owner, 'PATCH', `/api/me/bots/${bot.id}`, {
    name: { '': 'A', ru: 'Р' },
    description: { '': 'D' },
    short_description: { '': 'S' },
  });
  const state = async (front: number) => ({
    me: await call(bot, 'getMe', {}, front),
    texts: await Promise.all(kinds.map(({ get }) => call(bot, get, { language_code: 'ru' }, front))),
  });
  const before = await state(0);
  expect(before.texts).toEqual([{ name: 'Р' }, { description: 'D' }, { short_description: 'S' }]);
  await seen?.close();
  seen = undefined;
  await postgres.halt();
  for (const { key, set } of kinds) {
    for (const language of [{}, { language_code: 'ru' }]) {
      const answer = await service.bot(bot, set, { [key]: 'lost', ...language }, 1);
      expect(answer.status).toBe(503);
      expect(answer.body).toEqual({
        ok: false,
        error_code: 503,
        description: 'Service Unavailable: retry after 1',
        parameters: { retry_after: 1 },
      });
    }
  }
  const patched = await service.app(owner, 'PATCH', `/api/me/bots/${bot.id}`, { name: { '': 'lost' } });
  expect(patched.status).toBe(503);
  for (const front of [0, 1]) expect(await state(front)).toEqual(before);
  await postgres.start();
  for (const front of [0, 1]) expect(await state(front)).toEqual(before);
  expect(await app(owner, 'GET', `/api/me/bots/${bot.id}`)).toMatchObject({
    texts: { name: { '': 'A', ru: 'Р' }, description: { '': 'D' }, short_description: { '': 'S' } },
  });
  await call(bot, 'setMyName', { name: 'Back' });
  expect((await call(bot, 'getMe', {}, 1)).first_name).toBe('Back');
});
