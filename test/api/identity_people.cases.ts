import { beforeAll, describe, expect, test } from 'vitest';
import { openEvents } from '../clients/event_source.js';
import type { TestBot, TestUser } from '../support/service.js';
import { kinds, onWorld, type World } from './identity_world.js';

let world: World;
const newBot = () => world.newBot();
const speaker: World['speaker'] = (language) => world.speaker(language);
const call: World['call'] = (...given) => world.call(...given);
const app: World['app'] = (...given) => world.app(...given);

onWorld((started) => {
  world = started;
});

describe('people see texts in their language', () => {
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

  test.each(readers)(
    'interface §2: a reader with the language %s sees the text of that language, or the default',
    async (language, name) => {
      const user = await speaker(language);
      const page = await app(user, 'GET', `/api/bots/${bot.username.toUpperCase()}`);
      const texts = { name, description: `${name} d`, short_description: `${name} s` };
      expect(page).toEqual({ id: bot.id, username: bot.username, ...texts, can_write: true });
      const started = await app(user, 'POST', `/api/bots/${bot.username}/start`, {});
      expect(started.chat.first_name).toBe(name);
      const events = await openEvents(world.url, user.token);
      const { message_id } = await call(bot, 'sendMessage', { chat_id: user.id, text: 'x' });
      const answer = await events.received(
        ({ event, data }) => event === 'message' && data.message_id === message_id,
      );
      expect([answer.data.from.first_name, answer.data.chat.first_name]).toEqual([name, name]);
      const [listed] = (await app(user, 'GET', '/api/chats')).items;
      expect([listed.first_name, listed.last_message.from.first_name]).toEqual([name, name]);
      const chat = await app(user, 'GET', `/api/chats/${bot.id}`);
      expect([chat.first_name, chat.last_message.from.first_name]).toEqual([name, name]);
      const [newest] = (await app(user, 'GET', `/api/chats/${bot.id}/messages`)).items;
      expect([newest.from.first_name, newest.chat.first_name]).toEqual([name, name]);
      await call(bot, 'setMyName', {
        name: 'Changed',
        ...(names[language ?? ''] ? { language_code: language } : {}),
      });
      await call(bot, 'editMessageText', { chat_id: user.id, message_id, text: 'y' });
      const edited = await events.received(({ event }) => event === 'edited_message');
      expect(edited.data.from.first_name).toBe('Changed');
      events.cut();
      await call(bot, 'setMyName', { name, ...(names[language ?? ''] ? { language_code: language } : {}) });
    },
  );

  test('interface §2: the profile page of a bot shows the commands for the viewer', async () => {
    const plain = await newBot();
    const user = await speaker('ru');
    const path = `/api/bots/@${plain.username}`;
    const page = { id: plain.id, username: plain.username, name: 'named', can_write: true };
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
      await world.seen.refused(
        () => world.service.app(user, 'GET', `/api/bots/${name}`),
        404,
        'Not Found: bot not found',
      );
    }
  });
});

describe('behaviour §11: the owner of a bot sets its texts by language', () => {
  const own = (bot: TestBot) => `/api/me/bots/${bot.id}`;

  test('PATCH of bot texts changes only the texts and languages in the request', async () => {
    const bot = await newBot();
    const settings = { write_access: { policy: 'all' } };
    const bare = { id: bot.id, is_bot: true, username: bot.username, name: 'named', ...settings };
    expect(await app(world.owner, 'GET', own(bot))).toEqual({
      ...bare,
      texts: { name: {}, description: {}, short_description: {} },
    });
    const texts = {
      name: { '': 'A', ru: 'А' },
      description: { en: 'long' },
      short_description: { '': 's', tt: 'с' },
    };
    const patched = { ...bare, name: 'A', texts };
    expect(await app(world.owner, 'PATCH', own(bot), texts, 0)).toEqual(patched);
    expect(await app(world.owner, 'GET', own(bot))).toEqual(patched);
    expect((await call(bot, 'getMe', {}, 1)).first_name).toBe('A');
    expect(await call(bot, 'getMyDescription', { language_code: 'en' }, 1)).toEqual({ description: 'long' });
    const after = { ...texts, name: { ru: 'Б' } };
    expect(await app(world.owner, 'PATCH', own(bot), { name: { '': '', ru: 'Б' } }, 0)).toEqual({
      ...bare,
      texts: after,
    });
    expect((await call(bot, 'getMe', {}, 1)).first_name).toBe('named');
    expect(await app(world.owner, 'PATCH', own(bot), {})).toEqual({ ...bare, texts: after });
  });

  test("the owner sees the name of the bot in the owner's language", async () => {
    const speaking = await speaker('uz');
    const bot = await world.service.newBot(speaking, 'own');
    await app(speaking, 'PATCH', own(bot), { name: { uz: 'Oʻzbekcha' } }, 0);
    const shown = { id: bot.id, is_bot: true, username: bot.username, name: 'Oʻzbekcha' };
    expect(await app(speaking, 'GET', '/api/me/bots')).toEqual({ items: [shown] });
    expect(await app(speaking, 'GET', own(bot))).toMatchObject(shown);
  });

  test('PATCH of bot texts refuses every text that the setters refuse', async () => {
    const bot = await newBot();
    const other = await speaker();
    await app(world.owner, 'PATCH', own(bot), { name: { '': 'A' }, description: { ru: 'Д' } }, 0);
    const patch = (who: TestUser, body: object, code: number, text: string, path = own(bot)) =>
      world.seen.refused(() => world.service.app(who, 'PATCH', path, body, 1), code, text);
    const good = { name: { '': 'B' } };
    await world.seen.unchanged(async () => {
      await patch(other, good, 403, 'Forbidden: not the owner of the bot');
      await patch(other, {}, 403, 'Forbidden: not the owner of the bot');
      for (const id of ['999999', world.owner.id, 'x'])
        await patch(world.owner, good, 404, 'Not Found: bot not found', `/api/me/bots/${id}`);
      for (const { key, max, tooLong } of kinds) {
        const text = '😀'.repeat(max + 1);
        await patch(world.owner, { ...good, [key]: { '': 'x', kk: text } }, 400, `Bad Request: ${tooLong}`);
        for (const language of ['EN', 'en-US', 'de', 'default'])
          await patch(
            world.owner,
            { ...good, [key]: { [language]: 'x' } },
            400,
            'Bad Request: invalid language code specified',
          );
        await patch(
          world.owner,
          { [key]: { ru: 7 } },
          400,
          `Bad Request: parameter "${key}.ru" must be a string`,
        );
        const what = `Bad Request: parameter "${key}" must be an object of texts by language code`;
        for (const value of ['x', 7, ['x']]) await patch(world.owner, { [key]: value }, 400, what);
      }
    });
  });
});
