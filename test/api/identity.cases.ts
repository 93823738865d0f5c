import { describe, expect, test } from 'vitest';
import { kinds, languages, onWorld, type World } from './identity_world.js';

let world: World;
const newBot = () => world.newBot();
const speaker: World['speaker'] = (language) => world.speaker(language);
const call: World['call'] = (...given) => world.call(...given);
const app: World['app'] = (...given) => world.app(...given);
const refused: World['refused'] = (...given) => world.refused(...given);

onWorld((started) => {
  world = started;
});

describe.each(kinds)('$set and $get', ({ key, set, get, max, tooLong }) => {
  test('interface §2, §4.3: a bot has separate texts for each of the seven languages and for the default', async () => {
    const bot = await newBot();
    expect(await call(bot, set, { [key]: 'default' })).toBe(true);
    for (const language_code of languages) {
      expect(await call(bot, get, { language_code }, 1)).toEqual({ [key]: 'default' });
      expect(await call(bot, set, { [key]: `in ${language_code}`, language_code })).toBe(true);
    }
    for (const language_code of languages)
      expect(await call(bot, get, { language_code }, 1)).toEqual({ [key]: `in ${language_code}` });
    expect(await call(bot, get, {}, 1)).toEqual({ [key]: 'default' });
    const url = `${world.url}/bot${bot.token}/${get}?language_code=kk`;
    expect(await (await fetch(url)).json()).toEqual({ ok: true, result: { [key]: 'in kk' } });
  });

  test('interface §4.3: a call with an empty or missing language_code reads or writes the default text', async () => {
    const bot = await newBot();
    const first = key === 'name' ? 'named' : '';
    for (const params of [{}, { language_code: '' }, { language_code: 'ru' }])
      expect(await call(bot, get, params, 1)).toEqual({ [key]: first });
    await call(bot, set, { [key]: 'one', language_code: '' });
    for (const params of [{}, { language_code: '' }, { language_code: 'ru' }])
      expect(await call(bot, get, params, 1)).toEqual({ [key]: 'one' });
  });

  test('interface §8: a bot text that is one code point too long is refused', async () => {
    const bot = await newBot();
    await call(bot, set, { [key]: 'before' });
    const letters = ['x', 'ж', '😀', '𐎀'];
    const chosen = [{}, { language_code: 'hy' }];
    await world.seen.unchanged(async () => {
      for (const letter of letters)
        for (const language of chosen)
          await refused(bot, set, { [key]: letter.repeat(max + 1), ...language }, tooLong);
    });
    for (const letter of letters) {
      for (const language of chosen) {
        expect(await call(bot, set, { [key]: letter.repeat(max), ...language })).toBe(true);
        expect(await call(bot, get, language, 1)).toEqual({ [key]: letter.repeat(max) });
      }
    }
    // Leading and trailing white space is removed and does not count towards the maximum length.
    expect(await call(bot, set, { [key]: ` ${'x'.repeat(max)}\r\n` })).toBe(true);
    expect(await call(bot, get, {}, 1)).toEqual({ [key]: 'x'.repeat(max) });
  });

  test('interface §2: methods that set or get texts of bots refuse every language except the seven supported ones', async () => {
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
    await world.seen.unchanged(async () => {
      for (const language_code of wrong) {
        await refused(bot, set, { [key]: 'after', language_code }, 'invalid language code specified');
        await refused(bot, get, { language_code }, 'invalid language code specified');
      }
    });
    expect(await call(bot, get, {}, 1)).toEqual({ [key]: 'before' });
  });

  test('behaviour §2: setting an empty or invisible text removes the bot text of that language and no other', async () => {
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

  test('interface §4.3: setters of bot texts refuse a missing text and a text that is not a string', async () => {
    const bot = await newBot();
    await world.seen.unchanged(async () => {
      await refused(bot, set, {}, `parameter "${key}" is required`);
      for (const value of [7, true, null, ['x'], {}])
        await refused(bot, set, { [key]: value }, `parameter "${key}" must be a string`);
      await refused(bot, set, { [key]: 'a\u0000b' }, 'strings must be encoded in UTF-8');
    });
  });

  test('setting the text of one bot does not change the texts of other bots', async () => {
    const [bot, other] = [await newBot(), await newBot()];
    const before = await call(other, get, {}, 1);
    await call(bot, set, { [key]: 'mine' });
    expect(await call(other, get, {}, 1)).toEqual(before);
  });
});

describe('the default name of a bot is the same on all fronts', () => {
  test('interface §2: getMe on another front shows a new name as soon as setMyName has returned', async () => {
    const bot = await newBot();
    for (let i = 0; i < 20; i++) {
      const [here, there] = [i % 2, (i + 1) % 2];
      // Puts the old name into the caches of both fronts.
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

  test('interface §2: getMe and the messages that bots get show the default name, even if the bot has a name in another language', async () => {
    const bot = await newBot();
    await call(bot, 'setMyName', { name: 'По-русски', language_code: 'ru' });
    expect((await call(bot, 'getMe', {}, 1)).first_name).toBe('named');
    const user = await speaker('ru');
    await world.service.openChat(user, bot);
    const sent = await call(bot, 'sendMessage', { chat_id: user.id, text: 'x' }, 1);
    expect(sent.from.first_name).toBe('named');
  });

  test('interface §2: after setMyName, every front shows the new name, even in earlier messages of a direct chat', async () => {
    const bot = await newBot();
    const user = await speaker();
    await world.service.openChat(user, bot);
    await call(bot, 'sendMessage', { chat_id: user.id, text: 'old' }, 1);
    const path = `/api/chats/${bot.id}/messages`;
    expect((await app(user, 'GET', path)).items[0].from.first_name).toBe('named');
    await call(bot, 'setMyName', { name: 'Newer' });
    expect((await app(user, 'GET', path)).items[0].from.first_name).toBe('Newer');
    const sent = await call(bot, 'sendMessage', { chat_id: user.id, text: 'new' }, 1);
    expect(sent.from.first_name).toBe('Newer');
    const said = await app(user, 'POST', path, { text: 'hi' });
    expect(said.chat).toMatchObject({ id: bot.id, first_name: 'Newer' });
  });

  test('a long poll shows the bot name that was set while the poll waited', async () => {
    const bot = await newBot();
    const user = await speaker();
    await world.service.openChat(user, bot);
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

  test('a group message keeps the name that the bot had when it was sent', async () => {
    const bot = await newBot();
    const user = await speaker('tg');
    const group = await world.service.newGroup(world.owner, 'Team', [bot, user]);
    await call(bot, 'sendMessage', { chat_id: group, text: 'first' });
    await call(bot, 'setMyName', { name: 'Second' });
    await call(bot, 'setMyName', { name: 'Дуюм', language_code: 'tg' });
    expect((await call(bot, 'sendMessage', { chat_id: group, text: 'second' }, 1)).from.first_name).toBe(
      'Second',
    );
    const { items: messages } = await app(user, 'GET', `/api/chats/${group}/messages`);
    const texts = messages.filter((m: { text?: string }) => m.text !== undefined);
    expect(texts.map((m: { from: { first_name: string } }) => m.from.first_name)).toEqual([
      'Second',
      'named',
    ]);
    const { items } = await app(user, 'GET', `/api/chats/${group}/members`);
    const listed = items.find((item: { user: { id: number } }) => item.user.id === bot.id);
    expect(listed.user.first_name).toBe('Дуюм');
  });
});

describe('close, logOut and setMessageReaction change nothing', () => {
  test('behaviour §4: close and logOut return true, and the bot keeps working', async () => {
    const bot = await newBot();
    const user = await speaker();
    await world.service.openChat(user, bot);
    const [started] = await call(bot, 'getUpdates', {});
    const waiting = call(bot, 'getUpdates', { offset: started.update_id + 1, timeout: 20 }, 1);
    for (const method of ['close', 'logOut']) expect(await call(bot, method, {})).toBe(true);
    await app(user, 'POST', `/api/chats/${bot.id}/messages`, { text: 'still there?' });
    expect((await waiting)[0].message.text).toBe('still there?');
    expect((await call(bot, 'getMe', {}, 1)).id).toBe(bot.id);
  });

  test('interface §1: setMessageReaction refuses every call', async () => {
    const bot = await newBot();
    const user = await speaker();
    const { message_id } = await world.service.openChat(user, bot);
    const reaction = [{ type: 'emoji', emoji: '❤' }];
    for (const params of [{}, { chat_id: user.id, message_id, reaction }, { chat_id: user.id, message_id }])
      await refused(bot, 'setMessageReaction', params, "bots can't set reactions");
  });
});
