import { Api, InputFile } from 'grammy';
import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import { endpoints } from '../../src/endpoints/endpoints.gen.js';
import { methods } from '../../src/methods/methods.gen.js';
import { mp4 } from '../support/samples.js';
import { itemsOf, resultOf, type Service, type TestBot, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';
import { endpointRows, methodRows, type Row } from './authorization.cases.js';

let service: Service;
let [owner, former, removed, stranger, suspended] = [] as unknown as TestUser[];
let [bot, other, removedBot, suspendedBot] = [] as unknown as TestBot[];
let former_token = '';
let filled: Record<string, string | number> = {};
let before: string;

const admin = () => ({ token: service.adminToken });

async function stateOf(): Promise<string> {
  const chat = filled.chat;
  const get = (path: string) => resultOf(service.app(owner as TestUser, 'GET', path));
  const paths = ['', '/members', '/messages', '/posts'].map((end) => `/api/chats/${chat}${end}`);
  const of = `/api/me/bots/${bot?.id}`;
  const state = [];
  for (const path of [...paths, of, `${of}/token`, `${of}/webhook`, `/api/posts/${filled.post}`])
    state.push(await get(path));
  state.push(await resultOf(service.bot(bot as TestBot, 'getMe')));
  return JSON.stringify(state);
}

onSharedService(async (running) => {
  service = running;
  [owner, former, removed, stranger, suspended] = await Promise.all(
    ['owner', 'former', 'removed', 'stranger', 'suspended'].map((name) => service.newUser(name)),
  );
  // `former` created the bot and transferred it to `owner`. The transfer revoked the token of the bot.
  bot = await service.newBot(former as TestUser, 'handed');
  former_token = bot.token;
  await resultOf(
    service.app(former as TestUser, 'POST', `/api/me/bots/${bot.id}/transfer`, {
      username: owner?.username,
      confirm: true,
    }),
  );
  const { token } = await resultOf(service.app(owner as TestUser, 'GET', `/api/me/bots/${bot.id}/token`));
  bot = { ...bot, token };
  other = await service.newBot(stranger as TestUser, 'other');
  removedBot = await service.newBot(removed as TestUser, 'removed');
  suspendedBot = await service.newBot(suspended as TestUser, 'suspended');
  const made = { type: 'channel', title: 'Closed', private: true };
  const chat = await resultOf(service.app(owner as TestUser, 'POST', '/api/chats', made));
  const members = `/api/chats/${chat.id}/members`;
  const rights = { can_post_messages: true, can_edit_messages: true, can_delete_messages: true };
  for (const who of [bot, removedBot])
    await resultOf(
      service.app(owner as TestUser, 'PUT', `${members}/${who.id}`, { status: 'administrator', rights }),
    );
  await service.app(owner as TestUser, 'PUT', `${members}/${removed?.id}`, {});
  for (const who of [removedBot, removed])
    await service.app(owner as TestUser, 'DELETE', `${members}/${who?.id}`);
  const asked = { chat_id: chat.id, question: 'secret', options: ['a'] };
  const poll = await resultOf(service.bot(bot, 'sendPoll', asked));
  const sent = await resultOf(service.bot(bot, 'sendMessage', { chat_id: chat.id, text: 'secret' }));
  const posts = await itemsOf(service.app(owner as TestUser, 'GET', `/api/chats/${chat.id}/posts`));
  const [post] = posts;
  const api = new Api(bot.token, { apiRoot: service.fronts[0]?.url as string });
  const { video_note } = await api.sendVideoNote(chat.id, new InputFile(mp4(16, 16, 1), 'n.mp4'));
  filled = {
    ...{
      file: video_note.file_id,
      chat: chat.id,
      message: sent.message_id,
      poll: poll.message_id,
      post: post.external_id,
    },
    ...{ owner: owner?.id ?? 0, stranger: stranger?.id ?? 0, stranger_name: stranger?.username ?? '' },
    ...{ bot: bot.id, bot_name: bot.username },
  };
  for (const what of [`users/${suspended?.id}`, `bots/${suspendedBot.id}`])
    await resultOf(service.app(admin(), 'POST', `/api/admin/${what}/suspension`));
  before = await stateOf();
}, 60_000);

function fill(value: unknown): unknown {
  if (typeof value === 'string') return value.replace(/^\{(\w+)\}$/, (_, name) => String(filled[name]));
  if (Array.isArray(value)) return value.map(fill);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, fill(each)]));
}

async function send(verb: string, path: string, params: Record<string, unknown>, bearer?: string) {
  const search = new URLSearchParams(params as Record<string, string>).toString();
  const inQuery = verb === 'GET' || verb === 'DELETE';
  const { statusCode, headers, body } = await request(
    `${service.fronts[0].url}${path}${inQuery && search !== '' ? `?${search}` : ''}`,
    {
      method: verb as 'GET',
      headers: {
        ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
        ...(inQuery ? {} : { 'content-type': 'application/json' }),
      },
      body: inQuery ? null : JSON.stringify(params),
    },
  );
  // Does not read the body of a stream, because a stream does not end by itself.
  if (headers['content-type'] !== 'text/event-stream') return { status: statusCode, text: await body.text() };
  body.on('error', () => undefined).destroy();
  return { status: statusCode, text: '' };
}

function callEndpoint(verb: string, path: string, [, given = {}]: Row, bearer?: string) {
  const params = fill(given) as Record<string, unknown>;
  const fixed: Record<string, unknown> = { bot_id: filled.bot, chat_id: filled.chat, post: filled.post };
  const used = new Set<string>();
  const filledPath = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    used.add(name);
    return encodeURIComponent(String(params[name] ?? fixed[name]));
  });
  const rest = Object.fromEntries(Object.entries(params).filter(([name]) => !used.has(name)));
  return send(verb, filledPath, rest, bearer);
}

test('every endpoint and every method has a row in authorization.cases.ts', () => {
  expect(endpoints.map(({ verb, path }) => `${verb} ${path}`).sort()).toEqual(
    Object.keys(endpointRows).sort(),
  );
  expect(methods.map(({ name }) => name).sort()).toEqual(Object.keys(methodRows).sort());
});

describe.each(endpoints.map((endpoint) => [`${endpoint.verb} ${endpoint.path}`, endpoint] as const))(
  '%s',
  (name, { verb, path, caller }) => {
    const row = endpointRows[name] as Row;
    const about = row?.[0];

    test('an endpoint refuses callers without a valid token of the right kind', async () => {
      const unauthorized: Record<string, string | undefined> = {
        nobody: undefined,
        malformed: 'malformed',
        'a bot': bot?.token,
        'a suspended person': suspended?.token,
        ...(caller === 'user' ? { 'an operator': service.adminToken } : { 'a person': owner?.token }),
      };
      for (const [who, bearer] of Object.entries(unauthorized)) {
        const { status, text } = await callEndpoint(verb, path, row, bearer);
        // Partner endpoints answer 404, because leak reports are disabled in this service. Endpoints that need no token
        // answer 400 or 403, because sign-up and sign-in are off.
        const refused = about === 'partner' ? [404] : about === 'anyone' ? [400, 403] : [401];
        if (about !== 'anyone' || verb !== 'GET') expect(refused, who).toContain(status);
        expect(text).not.toContain('secret');
      }
    });

    if (about === 'bot' || about === 'chat')
      test('an endpoint refuses people without access to the bot or chat', async () => {
        for (const [who, person] of Object.entries({ stranger, former, removed })) {
          const { status, text } = await callEndpoint(verb, path, row, person?.token);
          const refused = about === 'bot' ? [403, 404] : [400, 403, 404];
          expect(refused, `${who}: ${status} ${text}`).toContain(status);
          expect(text).not.toContain('secret');
        }
      });

    if (about === 'admin' && verb === 'GET')
      test("an endpoint for operators accepts an operator's token", async () => {
        expect((await callEndpoint(verb, path, row, service.adminToken)).status).toBe(200);
      });

    if (caller === 'user' && verb === 'GET')
      test('an endpoint serves a person who has access to the bot or chat', async () => {
        const { status, text } = await callEndpoint(verb, path, row, owner?.token);
        // These paths may answer 400 or 404: no picture was set, no file or scheduled post has this identifier, and
        // link previews are off.
        const absent = /avatar|start_picture|files|link_preview|scheduled_post_id/.test(path);
        expect(absent ? [400, 404] : [200], text).toContain(status);
      });
  },
);

describe.each(methods.map(({ name }) => name))('%s', (name) => {
  const row = methodRows[name] as Row;
  const call = (token: string | undefined) =>
    send('POST', `/bot${token}/${name}`, fill(row[1] ?? {}) as Record<string, unknown>);

  test('a bot method refuses callers without a valid bot token', async () => {
    const unauthorized = {
      nobody: '',
      malformed: 'malformed',
      'a person': owner?.token,
      'an operator': service.adminToken,
      'the token from before the bot was transferred': former_token,
      'a suspended bot': suspendedBot?.token,
    };
    for (const [who, token] of Object.entries(unauthorized))
      expect([who, (await call(token)).status]).toEqual([who, 401]);
  });

  if (row?.[0] === 'chat')
    test('a bot method for a chat refuses bots that are not in the chat', async () => {
      for (const [who, of] of Object.entries({ other, removedBot })) {
        const { status, text } = await call(of?.token);
        expect([400, 403, 404], `${who}: ${status} ${text}`).toContain(status);
        expect(text).not.toContain('secret');
      }
    });

  if (row?.[0] === 'own' && name.startsWith('get'))
    test("a bot method that reads the bot's own data serves the bot", async () => {
      expect((await call(other?.token)).status).toBe(200);
    });
});

test('the refused calls of all tests in this file changed nothing', async () => {
  expect(await stateOf()).toBe(before);
});
