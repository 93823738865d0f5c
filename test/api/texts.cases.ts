import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import { catalogue } from '../../src/errors.js';
import { type Answer, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import type { Watch } from './refused.js';
import { onWatchedService } from './texts_service.js';
import './app_texts.cases.js';
import './message_texts.cases.js';

let service: Service;
let seen: Watch;
let user: TestUser;
let bot: TestBot;

onWatchedService(async (watched) => {
  ({ service, seen } = watched);
  user = await service.newUser('ann');
  bot = await service.newBot(user, 'texts');
  await service.openChat(user, bot);
});

async function raw(
  path: string,
  method = 'POST',
  body?: string | Buffer,
  headers: Record<string, string> = { 'content-type': 'application/json' },
): Promise<Answer> {
  const url = service.fronts[0].url + path;
  const answer = await request(url, {
    method: method as 'GET',
    headers,
    ...(body === undefined ? {} : { body }),
  });
  const text = await answer.body.text();
  return { status: answer.statusCode, headers: answer.headers, body: text === '' ? null : JSON.parse(text) };
}

const of = (method: string) => `/bot${bot.token}/${method}`;
const send = (body: unknown) => raw(of('sendMessage'), 'POST', JSON.stringify(body));

describe('unknown paths, wrong HTTP methods and missing tokens are refused', () => {
  test.each([
    ['/', 'GET', 404, 'Not Found'],
    ['/nothing/here', 'POST', 404, 'Not Found'],
    ['/api/nothing', 'GET', 404, 'Not Found'],
    ['/api/me', 'POST', 405, 'Method Not Allowed'],
    ['/api/me/bots', 'DELETE', 405, 'Method Not Allowed'],
    ['/bot/getMe', 'GET', 401, 'Unauthorized'],
    ['/bot', 'GET', 401, 'Unauthorized'],
    ['/botnonsense/getMe', 'GET', 401, 'Unauthorized'],
    ['/api/me', 'GET', 401, 'Unauthorized'],
  ])('a call of %s with the verb %s gets %i %s', async (path, verb, code, text) => {
    await seen.refused(() => raw(path, verb), code as number, text as string);
  });

  test('a request with a valid token is refused for an unknown method or a wrong HTTP verb', async () => {
    const known = 'Not Found: method not found';
    await seen.unchanged(async () => {
      await seen.refused(() => raw(of('sendEverything')), 404, known);
      await seen.refused(() => raw(of('')), 404, known);
      await seen.refused(() => raw(`/bot${bot.token}`, 'GET'), 404, known);
      await seen.refused(() => raw(of('constructor')), 404, known);
      await seen.refused(() => raw(of('test/getMe')), 404, 'Not Found');
      for (const verb of ['PUT', 'PATCH', 'DELETE', 'OPTIONS'])
        await seen.refused(() => raw(of('getMe'), verb), 405, 'Method Not Allowed');
    });
  });

  test('bot methods accept GET and POST, and the case of method names is ignored', async () => {
    for (const [name, verb] of [
      ['getMe', 'GET'],
      ['GETME', 'POST'],
      ['getme', 'GET'],
    ] as const) {
      const answer = await raw(of(name), verb);
      expect(await resultOf(answer)).toEqual({
        id: bot.id,
        is_bot: true,
        first_name: 'texts',
        username: bot.username,
        can_join_groups: true,
        can_read_all_group_messages: true,
        supports_inline_queries: false,
      });
      expect(answer.headers['content-type']).toBe('application/json');
    }
  });
});

describe('tokens are checked', () => {
  test('every invalid token gets the same answer, whether malformed, unknown, replaced or of the wrong kind', async () => {
    const [id, secret = ''] = bot.token.split(':');
    const flipped = secret.slice(0, 5) + (secret[5] === 'x' ? 'y' : 'x') + secret.slice(6);
    const other = await service.newBot(user, 'other');
    const former = other.token;
    await resultOf(service.bot(former, 'getMe'));
    await resultOf(service.app(user, 'POST', `/api/me/bots/${other.id}/regenerate_token`));
    const wrong = [
      `${id}:${flipped}`,
      `${id}:`,
      `${Number(id) + 1}:${secret}`,
      user.token,
      former,
      `${bot.token}x`,
      'a%zz',
    ];
    await seen.unchanged(async () => {
      for (const token of wrong)
        await seen.refused(() => raw(`/bot${token}/getMe`, 'GET'), 401, 'Unauthorized');
      for (const token of [bot.token, service.adminToken, '', `${user.token}x`]) {
        await seen.refused(
          () => raw('/api/me', 'GET', undefined, { authorization: `Bearer ${token}` }),
          401,
          'Unauthorized',
        );
      }
      const asUser = { authorization: `Bearer ${user.token}`, 'content-type': 'application/json' };
      await seen.refused(() => raw('/api/admin/users', 'POST', '{}', asUser), 401, 'Unauthorized');
    });
  });

  test('the colon of a token may be written as %3A', async () => {
    expect((await raw(`/bot${bot.token.replace(':', '%3A')}/getMe`, 'GET')).status).toBe(200);
    expect((await raw('/api/me', 'GET', undefined, { authorization: `bearer ${user.token}` })).status).toBe(
      200,
    );
  });
});

describe('bodies are checked', () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const badJson = "Bad Request: can't parse JSON object";
  const badUnicode = 'Bad Request: strings must be encoded in UTF-8';

  test.each(['{', '[1]', '"text"', 'null', '7', '{"a":1}x', `${'{"a":'.repeat(100)}1${'}'.repeat(100)}`])(
    'a body that is not a JSON object is refused: %s',
    async (body) => {
      await seen.refused(() => raw(of('sendMessage'), 'POST', body), 400, badJson);
    },
  );

  test('text that is not valid Unicode is refused in every encoding', async () => {
    const start = `{"chat_id":${user.id},"text":"`;
    await seen.unchanged(async () => {
      await seen.refused(() => raw(of('sendMessage'), 'POST', `${start}\\ud800"}`), 400, badUnicode);
      await seen.refused(() => raw(of('sendMessage'), 'POST', `${start}a\\u0000b"}`), 400, badUnicode);
      const bytes = Buffer.concat([Buffer.from(start), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]);
      await seen.refused(() => raw(of('sendMessage'), 'POST', bytes), 400, badUnicode);
      await seen.refused(
        () => raw(of('sendMessage'), 'POST', `chat_id=${user.id}&text=%C3%28`, form),
        400,
        badUnicode,
      );
      await seen.refused(
        () => raw(`${of('sendMessage')}?chat_id=${user.id}&text=a%00b`, 'GET'),
        400,
        badUnicode,
      );
      const description = '[{"command":"x","description":"a\\u0000b"}]';
      await seen.refused(() => service.bot(bot, 'setMyCommands', { commands: description }), 400, badUnicode);
      const markup = { inline_keyboard: [[{ text: '\ud800', callback_data: 'x' }]] };
      await seen.refused(
        () => send({ chat_id: user.id, text: 'x', reply_markup: JSON.stringify(markup) }),
        400,
        badUnicode,
      );
    });
  });

  test('a body over 1 MiB and an upload over 50 MiB are refused with 413', async () => {
    const large = 'Request Entity Too Large';
    await seen.refused(
      () => raw(of('sendMessage'), 'POST', `{"text":"${'x'.repeat(1024 * 1024)}"}`),
      413,
      large,
    );
    const upload = { 'content-type': 'multipart/form-data; boundary=x' };
    const body = Buffer.alloc(50 * 1024 * 1024 + 1);
    await seen.refused(() => raw(of('sendMessage'), 'POST', body, upload), 413, large);
    const padded = JSON.stringify({ chat_id: user.id, text: 'x', pad: '' });
    const fits = padded.replace('"pad":""', `"pad":"${'x'.repeat(1024 * 1024 - padded.length)}"`);
    expect(fits).toHaveLength(1024 * 1024);
    expect((await raw(of('sendMessage'), 'POST', fits)).status).toBe(200);
  });
});

describe('parameters are checked', () => {
  const required = (name: string) => `Bad Request: parameter "${name}" is required`;
  const mustBe = (name: string, what: string) => `Bad Request: parameter "${name}" must be ${what}`;
  const call = (method: string, params: object) => () => service.bot(bot, method, { ...params });

  test('a refusal names the parameter that is missing or empty, unless a more specific error text exists', async () => {
    const chat = { chat_id: user.id };
    await seen.unchanged(async () => {
      await seen.refused(call('editMessageText', { ...chat, text: 'x' }), 400, required('message_id'));
      await seen.refused(
        call('editMessageText', { ...chat, text: 'x', message_id: '' }),
        400,
        required('message_id'),
      );
      await seen.refused(call('deleteMessage', chat), 400, required('message_id'));
      await seen.refused(call('editMessageReplyMarkup', chat), 400, required('message_id'));
      await seen.refused(call('answerCallbackQuery', {}), 400, required('callback_query_id'));
      await seen.refused(call('setMyCommands', {}), 400, required('commands'));
      await seen.refused(call('sendMessage', { text: 'x' }), 400, 'Bad Request: chat_id is empty');
      await seen.refused(
        call('sendMessage', { text: 'x', chat_id: '' }),
        400,
        'Bad Request: chat_id is empty',
      );
      await seen.refused(call('sendMessage', chat), 400, 'Bad Request: message text is empty');
      for (const chat_id of ['x', '@no_such_chat', 1.5, 1e13, -1e13, 0, '12345678901234567890', {}, [], true])
        await seen.refused(call('sendMessage', { chat_id, text: 'x' }), 400, 'Bad Request: chat not found');
    });
  });

  test('a refusal names the parameter that has the wrong type', async () => {
    const chat = { chat_id: user.id, text: 'x' };
    await seen.unchanged(async () => {
      await seen.refused(
        call('editMessageText', { ...chat, message_id: 'one' }),
        400,
        mustBe('message_id', 'an integer'),
      );
      await seen.refused(
        call('editMessageText', { ...chat, message_id: 1.5 }),
        400,
        mustBe('message_id', 'an integer'),
      );
      await seen.refused(call('getUpdates', { limit: 'many' }), 400, mustBe('limit', 'an integer'));
      await seen.refused(call('getUpdates', { timeout: [] }), 400, mustBe('timeout', 'an integer'));
      await seen.refused(
        call('sendMessage', { ...chat, protect_content: 'yes' }),
        400,
        mustBe('protect_content', 'a boolean'),
      );
      await seen.refused(
        call('sendMessage', { ...chat, reply_parameters: '7' }),
        400,
        mustBe('reply_parameters', 'an object with message_id'),
      );
      await seen.refused(
        call('setMyCommands', { commands: 'start' }),
        400,
        mustBe('commands', 'an array of commands'),
      );
      await seen.refused(
        call('answerCallbackQuery', { callback_query_id: {} }),
        400,
        mustBe('callback_query_id', 'a string'),
      );
      for (const url of ['javascript:alert(1)', 'data:text/html,x', 'https://a b', ' https://a.example'])
        await seen.refused(
          call('answerCallbackQuery', { callback_query_id: '1', url }),
          400,
          mustBe('url', 'an http, https or tg address'),
        );
      await seen.refused(
        call('answerCallbackQuery', { callback_query_id: '1', url: `https://a.example/${'a'.repeat(2048)}` }),
        400,
        mustBe('url', 'an address of up to 2048 characters'),
      );
      await seen.refused(
        call('setMyCommands', { commands: [], scope: { type: 'x' } }),
        400,
        mustBe('scope.type', 'a scope type'),
      );
    });
  });

  test('null, the text "null" and a list parameter that is not an array count as absent', async () => {
    const names = ['parse_mode', 'entities', 'reply_markup', 'reply_parameters', 'reply_to_message_id'];
    names.push('disable_notification', 'protect_content', 'link_preview_options');
    const all = (value: unknown) => Object.fromEntries(names.map((name) => [name, value]));
    const chat = { chat_id: String(user.id), text: 'null' };
    const form = new URLSearchParams({ ...chat, ...all('null') }).toString();
    const answers = [
      send({ ...chat, ...all(null) }),
      send({ ...chat, ...all('null') }),
      raw(of('sendMessage'), 'POST', form, { 'content-type': 'application/x-www-form-urlencoded' }),
      raw(`${of('sendMessage')}?${form}`, 'GET'),
      send({ ...chat, entities: '{' }),
      send({ ...chat, entities: { type: 'bold' } }),
    ];
    for (const answer of answers)
      expect(await resultOf(answer)).toEqual({
        ...{ message_id: expect.any(Number), date: expect.any(Number), text: 'null' },
        ...{ from: expect.anything(), chat: expect.anything() },
      });
    const reply_markup = { inline_keyboard: [[{ text: 'a', callback_data: 'b', url: null, pay: null }]] };
    const { reply_markup: kept } = await resultOf(send({ ...chat, reply_markup }));
    expect(kept).toEqual({ inline_keyboard: [[{ text: 'a', callback_data: 'b' }]] });
    for (const allowed_updates of ['message', null, 'null', { message: true }])
      await resultOf(service.bot(bot, 'getUpdates', { allowed_updates }));
    expect((await resultOf(service.bot(bot, 'getWebhookInfo'))).allowed_updates).toBeUndefined();
  });

  test('integers and booleans may be sent as text, and nested values as JSON text', async () => {
    for (const yes of ['true', '1', 1, true]) {
      const sent = await resultOf(send({ chat_id: String(user.id), text: 'x', protect_content: yes }));
      expect(sent.has_protected_content).toBe(true);
    }
    for (const no of ['false', '0', 0, false, '']) {
      const sent = await resultOf(send({ chat_id: user.id, text: 'x', protect_content: no }));
      expect(sent.has_protected_content).toBeUndefined();
    }
    const first = await resultOf(send({ chat_id: user.id, text: 'first' }));
    const reply_parameters = JSON.stringify({
      message_id: String(first.message_id),
      allow_sending_without_reply: 'true',
    });
    const reply = await resultOf(send({ chat_id: user.id, text: 'x', reply_parameters }));
    expect(reply.reply_to_message).toMatchObject({ message_id: first.message_id, text: 'first' });
  });

  test('invalid commands, languages and scopes are refused', async () => {
    const one = (command: string, description = 'd') => ({ commands: [{ command, description }] });
    await seen.unchanged(async () => {
      await seen.refused(call('setMyCommands', one('Bad-Name')), 400, 'Bad Request: BOT_COMMAND_INVALID');
      await seen.refused(call('setMyCommands', one('x'.repeat(33))), 400, 'Bad Request: BOT_COMMAND_INVALID');
      await seen.refused(
        call('setMyCommands', one('x', ' ')),
        400,
        'Bad Request: BOT_COMMAND_DESCRIPTION_INVALID',
      );
      await seen.refused(
        call('setMyCommands', one('x', 'd'.repeat(257))),
        400,
        'Bad Request: BOT_COMMAND_DESCRIPTION_INVALID',
      );
      const many = {
        commands: Array.from({ length: 101 }, (_, i) => ({ command: `c${i}`, description: 'd' })),
      };
      await seen.refused(call('setMyCommands', many), 400, 'Bad Request: BOT_COMMANDS_TOO_MUCH');
      const language = 'Bad Request: invalid language code specified';
      for (const method of ['setMyCommands', 'getMyCommands', 'deleteMyCommands'])
        await seen.refused(call(method, { ...one('x'), language_code: 'english' }), 400, language);
      await seen.refused(
        call('getMyCommands', { scope: { type: 'chat' } }),
        400,
        'Bad Request: chat_id is empty',
      );
      await seen.refused(
        call('getMyCommands', { scope: { type: 'chat_member', chat_id: 1 } }),
        400,
        required('user_id'),
      );
    });
    expect(await resultOf(service.bot(bot, 'getMyCommands'))).toEqual([]);
  });

  test('the error catalogue uses only HTTP statuses that the interface lists', () => {
    // The interface does not list 502, because clients never get this status. A front that is shutting down sends 502
    // only to a load balancer that requests this status by a header.
    const { leaving, ...listed } = catalogue;
    expect(leaving.code).toBe(502);
    const codes = new Set(Object.values(listed).map(({ code }) => code));
    expect([...codes].sort()).toEqual([400, 401, 403, 404, 405, 409, 413, 416, 429, 500, 503]);
  });
});
