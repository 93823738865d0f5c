import pg from 'pg';
import { Agent, request } from 'undici';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { limits } from '../../src/limits.js';
import { type ExportLine, exportLine } from '../../src/wire/export_results.js';
import { eventually, openEvents } from '../clients/event_source.js';
import type { Front } from '../support/role_process.js';
import { itemsOf, resultOf, type Service, type TestUser } from '../support/service.js';
import { onConsentService } from './consent_service.js';
import './transfer_consent.cases.js';

let service: Service;
let database: pg.Client;
let operator: { readonly token: string };

onConsentService(async (running) => {
  service = running;
  operator = { token: service.adminToken };
  database = new pg.Client(service.databaseUrl);
  await database.connect();
});
afterAll(() => database?.end());

const refusal = (status: number, description: string) => ({
  status,
  body: { ok: false, error_code: status, description },
});
const unauthorized = refusal(401, 'Unauthorized');
const say = (by: { readonly token: string }, chat: number, text: string) =>
  resultOf(service.app(by, 'POST', `/api/chats/${chat}/messages`, { text }));
const textsOf = async (by: TestUser, chat: number): Promise<string[]> =>
  (await itemsOf(service.app(by, 'GET', `/api/chats/${chat}/messages`))).flatMap(
    ({ text }: { text?: string }) => text ?? [],
  );
const end = (by: { readonly token: string }) => service.app(by, 'DELETE', '/api/me', { confirm: true });
const count = async (text: string, ...values: unknown[]) =>
  Number((await database.query(`select count(*) as n from ${text}`, values)).rows[0].n);

/**
 * Creates a person who has a bot, chats, messages, reactions and tokens, so that every table with personal data has a
 * row about this person.
 */
async function furnish(name: string) {
  const ann = await service.newUser(name);
  const olga = await service.newUser('olga');
  const own = await service.newBot(ann, 'own');
  const other = await service.newBot(olga, 'other');
  await service.openChat(ann, other);
  await say(ann, other.id, `direct of ${name}`);
  await resultOf(service.bot(other, 'sendMessage', { chat_id: ann.id, text: 'an answer' }));
  const group = await service.newGroup(ann, 'Team', [olga, other]);
  await resultOf(
    service.app(ann, 'PUT', `/api/chats/${group}/members/${olga.id}`, {
      status: 'administrator',
      rights: { can_pin_messages: true },
    }),
  );
  const pinned = await say(ann, group, `group of ${name}`);
  await resultOf(service.app(ann, 'POST', `/api/chats/${group}/pin`, { message_id: pinned.message_id }));
  await say(olga, group, 'of another');
  const made = { type: 'channel', title: 'News', private: true };
  const { id: channel } = await resultOf(service.app(olga, 'POST', '/api/chats', made));
  await resultOf(service.app(olga, 'PUT', `/api/chats/${channel}/members/${ann.id}`, {}));
  await say(olga, channel, 'a post');
  const [post] = await itemsOf(service.app(ann, 'GET', `/api/chats/${channel}/posts`));
  await resultOf(service.app(ann, 'POST', `/api/posts/${post.id}/reactions`, { emoji: '👍' }));
  await resultOf(service.app(olga, 'POST', `/api/posts/${post.id}/reactions`, { emoji: '👍' }));
  return { ann, olga, own, other, group, channel, post };
}

describe('accounts are deleted', () => {
  test('an account is not deleted without a confirmation', async () => {
    const ann = await service.newUser('ann');
    for (const body of [{}, { confirm: false }])
      expect((await service.app(ann, 'DELETE', '/api/me', body)).status).toBe(400);
    expect((await service.app(ann, 'GET', '/api/me')).status).toBe(200);
  });

  test('no node returns data of a deleted account', async () => {
    const { ann, olga, own, other, group, channel, post } = await furnish('ann');
    await resultOf(service.app(ann, 'POST', `/api/chats/${other.id}/read`, { message_id: 2 }));
    const second = await resultOf(service.app(ann, 'POST', '/api/me/tokens', { name: 'phone' }));
    await resultOf(
      service.app(olga, 'POST', `/api/me/bots/${other.id}/transfer`, {
        username: ann.username,
        confirm: true,
      }),
    );
    const poll = service.bot(own, 'getUpdates', { timeout: 30, allowed_updates: [] }, 1);
    const stream = await request(`${(service.fronts[1] as Front).url}/api/stream`, {
      headers: { authorization: `Bearer ${ann.token}` },
      dispatcher: new Agent(),
    });
    const closed = stream.body.text().catch(() => 'cut');
    const watching = await openEvents((service.fronts[1] as Front).url, olga.token);

    expect(await end(ann)).toMatchObject({ status: 200, body: { ok: true, result: true } });
    await closed;
    expect(await poll).toMatchObject(unauthorized);
    for (const front of [0, 1]) {
      for (const token of [ann.token, second.token])
        expect(await service.app({ token }, 'GET', '/api/me', undefined, front)).toMatchObject(unauthorized);
      expect(await service.bot(own, 'getMe', {}, front)).toMatchObject(unauthorized);
    }
    expect(await end(ann)).toMatchObject(unauthorized);
    expect((await service.bot(other, 'sendMessage', { chat_id: ann.id, text: 'x' }, 1)).body.ok).toBe(false);
    // Flushers remove the remaining data of the account, which may take long on a busy machine.
    const left = () => count('account_removals where user_id = $1', ann.id);
    await vi.waitFor(async () => expect(await left()).toBe(0), { timeout: 20_000, interval: 50 });
    for (const front of [0, 1])
      expect(await service.bot(other, 'sendMessage', { chat_id: ann.id, text: 'x' }, front)).toMatchObject(
        refusal(400, 'Bad Request: chat not found'),
      );
    // When a client that has the group open gets the event `reset`, it reloads the group.
    await watching.received(({ event, data }) => event === 'reset' && data.chat_id === group);
    watching.cut();

    expect(await textsOf(olga, group)).toEqual(['of another']);
    const chat = await resultOf(service.app(olga, 'GET', `/api/chats/${group}`));
    expect([chat.member_count, chat.pinned_message]).toEqual([2, undefined]);
    const { items: members } = await resultOf(service.app(olga, 'GET', `/api/chats/${group}/members`));
    expect(members.map((m: { user: { id: number }; status: string }) => [m.user.id, m.status])).toEqual(
      expect.arrayContaining([[olga.id, 'creator']]),
    );
    expect(members.map((m: { user: { id: number } }) => m.user.id)).not.toContain(ann.id);
    const seen = await resultOf(service.app(olga, 'GET', `/api/posts/${post.id}`));
    expect(seen.reactions).toMatchObject([{ emoji: '👍', count: 1 }]);
    expect(JSON.stringify(seen.reactions)).not.toContain(ann.username);
    expect(await itemsOf(service.app(olga, 'GET', '/api/me/transfers'))).toEqual([]);
    expect(await service.app(olga, 'GET', `/api/bots/${own.username}`)).toMatchObject(
      refusal(404, 'Not Found: bot not found'),
    );
    expect(channel).toBeLessThan(0);
    const taken = await service.app(operator, 'POST', '/api/admin/users', {
      username: ann.username,
      first_name: 'X',
    });
    expect(taken).toMatchObject(refusal(400, 'Bad Request: username is already taken'));
    expect(
      await service.app(olga, 'POST', `/api/me/bots/${other.id}/transfer`, {
        username: ann.username,
        confirm: true,
      }),
    ).toMatchObject(refusal(400, `Bad Request: user @${ann.username} not found`));
    for (const [verb, path, body] of [
      ['POST', `/api/admin/users/${ann.id}/tokens`, {}],
      ['POST', `/api/admin/users/${ann.id}/suspension`, {}],
      ['DELETE', `/api/admin/users/${ann.id}`, { confirm: true }],
    ] as const)
      expect(await service.app(operator, verb, path, body)).toMatchObject(
        refusal(404, 'Not Found: user not found'),
      );

    expect(await count('direct_chats where user_id = $1', ann.id)).toBe(0);
    expect(await count('chat_members where member_id = $1', ann.id)).toBe(0);
    for (const table of ['messages', 'post_reactions'])
      await expect
        .poll(() => count(`${table} where user_id = $1 and record is not null`, ann.id), { timeout: 20_000 })
        .toBe(0);
    for (const table of ['user_tokens', 'read_marks', 'notices', 'leaks'])
      expect(await count(`${table} where user_id = $1`, ann.id)).toBe(0);
    const { rows } = await database.query('select * from users where id = $1', [ann.id]);
    expect(rows[0]).toMatchObject({ username: null, first_name: '', last_name: null, language_code: null });
    for (const text of ['direct of ann', 'group of ann'])
      expect(await count('messages where position($1::bytea in record) > 0', Buffer.from(text))).toBe(0);
  });

  test('an operator can delete an account, even a suspended one', async () => {
    const eve = await service.newUser('eve');
    const path = `/api/admin/users/${eve.id}`;
    await resultOf(service.app(operator, 'POST', `${path}/suspension`));
    expect((await service.app(operator, 'DELETE', path)).status).toBe(400);
    expect(await resultOf(service.app(operator, 'DELETE', path, { confirm: true }))).toBe(true);
    expect(await service.app(operator, 'DELETE', `${path}/suspension`)).toMatchObject(
      refusal(404, 'Not Found: user not found'),
    );
  });
});

/** Validates each line of an export against its schema in the OpenAPI document, and returns the lines. */
async function exported(by: { readonly token: string }): Promise<ExportLine[]> {
  const answer = await request(`${service.fronts[0].url}/api/me/export`, {
    headers: { authorization: `Bearer ${by.token}` },
  });
  expect(answer.statusCode).toBe(200);
  expect(answer.headers['content-type']).toBe('application/x-ndjson');
  const text = await answer.body.text();
  expect(text.endsWith('\n')).toBe(true);
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => exportLine.parse(JSON.parse(line)));
  return lines.filter(({ kind }) => kind !== 'wait') as ExportLine[];
}

describe('accounts are exported', () => {
  const kind = <K extends ExportLine['kind']>(lines: readonly ExportLine[], which: K) =>
    lines.filter((line): line is Extract<ExportLine, { kind: K }> => line.kind === which);

  test('an export contains all data of the person except secrets', async () => {
    const { ann, own, other, group, channel, post } = await furnish('ida');
    await resultOf(
      service.bot(own, 'setMyCommands', { commands: [{ command: 'a', description: 'does a' }] }),
    );
    await resultOf(service.app(ann, 'PATCH', `/api/me/bots/${own.id}`, { description: { '': 'says' } }));
    const picture = { text: 'a picture', photo: 'https://example.org/p.png' };
    await resultOf(service.app(ann, 'POST', `/api/chats/${group}/messages`, picture));
    await resultOf(service.app(ann, 'POST', `/api/chats/${group}/read`, { message_id: 1 }));
    const many = 30;
    for (let n = 0; n < many; n++) await say(ann, other.id, `long ${n} ${'x'.repeat(1_000)}`);
    await eventually(async () => expect(await count('post_reactions where user_id = $1', ann.id)).toBe(1));

    const lines = await exported(ann);
    expect(lines[0]).toMatchObject({ kind: 'begin', format: 1 });
    expect(lines.at(-1)).toEqual({ kind: 'end', lines: lines.length - 1 });
    expect(kind(lines, 'profile')).toMatchObject([{ user: { id: ann.id, username: ann.username } }]);
    expect(kind(lines, 'token')).toHaveLength(1);
    expect(kind(lines, 'bot')).toMatchObject([
      { bot: { id: own.id, texts: { description: { '': 'says' } } } },
    ]);
    expect(kind(lines, 'commands')).toMatchObject([{ bot_id: own.id, commands: [{ command: 'a' }] }]);
    expect(kind(lines, 'audit').map(({ event }) => event.event)).toEqual(['texts_changed', 'created']);
    expect(kind(lines, 'chat').map(({ chat, status }) => [chat.id, status])).toEqual([
      [other.id, 'member'],
      ...[
        [group, 'creator'],
        [channel, 'member'],
      ].sort(([a], [b]) => Number(a) - Number(b)),
    ]);
    expect(kind(lines, 'chat').find(({ chat }) => chat.id === group)?.read_until).toBe(1);
    const messages = kind(lines, 'message').map(({ chat_id, message }) => [
      chat_id,
      (message as { text?: string }).text,
    ]);
    const direct = messages.filter(([chat]) => chat === other.id);
    expect(direct).toHaveLength(many + 3);
    expect(direct.slice(-3).map(([, text]) => text)).toEqual(['an answer', 'direct of ida', '/start']);
    expect(messages.map(([, text]) => text)).toContain('group of ida');
    expect(messages.map(([, text]) => text)).not.toContain('of another');
    expect(kind(lines, 'media')).toMatchObject([{ chat_id: group, type: 'photo', url: picture.photo }]);
    expect(kind(lines, 'reaction')).toMatchObject([{ post_id: post.id, emoji: '👍' }]);
    const whole = JSON.stringify(lines);
    for (const { token } of [ann, own]) expect(whole).not.toContain(token.slice(-20));

    for (let n = 1; n < limits.exports_in_interval_max; n++) await exported(ann);
    const refused = await service.app(ann, 'GET', '/api/me/export', undefined, 1);
    expect(refused.status).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(60);
  });
});
