/**
 * Tests pinned and archived chats in the chat list of a person. Only Postgres stores which chats are pinned or
 * archived.
 */
import { beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { openAnywhere } from '../support/cluster.js';
import { ask } from '../support/postgres_pair.js';
import { type Answer, resultOf, type Service, type TestUser } from '../support/service.js';
import { onSharedService } from '../support/shared.js';

let service: Service;
/** The person who writes in the groups. */
let ann: TestUser;
let ben: TestUser;
/** The groups to which Ann and Ben both belong, latest activity first. */
let groups: number[];

onSharedService((running) => {
  service = running;
});

beforeEach(async () => {
  [ann, ben] = [await service.newUser('ann'), await service.newUser('ben')];
  const titles = Array.from({ length: limits.chats_pinned_max + 3 }, (_, n) => `Group ${n}`);
  await Promise.all(titles.map((title) => service.newGroup(ann, title, [ben])));
  groups = (await list()).map(({ id }) => id);
});

interface Listed {
  readonly id: number;
  readonly list_pin?: number;
  readonly archived?: true;
}

const call = (verb: string, path: string) => resultOf(service.app(ben, verb, `/api/chats${path}`));
const pin = (group: number) => call('PUT', `/${group}/list_pin`);
const archive = (group: number) => call('PUT', `/${group}/archive`);
const mute = (group: number) => call('PUT', `/${group}/mute`);
const say = (group: number) =>
  resultOf(service.app(ann, 'POST', `/api/chats/${group}/messages`, { text: 'x' }));

async function list(query = '', limit = 100): Promise<Listed[]> {
  const all: Listed[] = [];
  for (let cursor = ''; ; ) {
    const { items, next_cursor } = await call('GET', `?limit=${limit}${query}${cursor}`);
    all.push(...items);
    if (next_cursor === undefined) return all;
    cursor = `&cursor=${next_cursor}`;
  }
}

const ids = async (query = '', limit = 100) => (await list(query, limit)).map(({ id }) => id);
const archived = () => ids('&archived=true');
const group = (index: number) => groups.at(index) as number;
const without = (...gone: number[]) => groups.filter((id) => !gone.includes(id));

const sql = (text: string, ...values: unknown[]) => ask<Answer['body']>(service.databaseUrl, text, values);

/** Removes the groups from Redis, after Postgres has stored them. */
async function loseChats(): Promise<void> {
  const client = openAnywhere(service.redis);
  const keys = await Promise.all(
    groups.flatMap((id) => [client.keys(`*:msg:${id}:*`), client.keys(`*:chat:${id}`)]),
  );
  for (const id of groups) {
    const chat = keys.flat().find((key) => key.endsWith(`:chat:${id}`));
    const newest = Number(await client.hget(chat as string, 's'));
    const flushed = async () =>
      (await sql('select last_message_id as id from chat_sequences where chat_id = $1', id))[0]?.id;
    await expect.poll(async () => Number(await flushed()), { timeout: 20_000 }).toBe(newest);
  }
  for (const key of keys.flat()) await client.unlink(key);
  client.disconnect();
}

test('the chat list starts with the pinned chats, latest pin first, and shows each chat once for every page size', async () => {
  const pins = [group(-1), group(2), group(-2)];
  for (const id of pins) await pin(id);
  // Pinning a pinned chat again does not change its position.
  await pin(group(2));
  const order = [...pins].reverse();
  for (const limit of [1, 2, 3, 4, 100]) {
    const all = await list('', limit);
    expect(all.map(({ id }) => id)).toEqual([...order, ...without(...pins)]);
    expect(all.map(({ list_pin }) => list_pin).slice(0, 4)).toEqual([3, 2, 1, undefined]);
  }
  // Dates have whole seconds, so this waits for the next second to make the message newer than the groups.
  const made = Math.floor(Date.now() / 1_000);
  await expect.poll(() => Math.floor(Date.now() / 1_000), { timeout: 5_000 }).toBeGreaterThan(made);
  await say(group(4));
  expect((await ids()).slice(0, 3)).toEqual(order);
  expect(await call('GET', `/${group(2)}`)).toMatchObject({ id: group(2), list_pin: 2 });
  await call('DELETE', `/${group(2)}/list_pin`);
  await call('DELETE', `/${group(2)}/list_pin`);
  expect((await ids()).slice(0, 3)).toEqual([group(-2), group(-1), group(4)]);
});

test('a person can pin five chats, and a further pin is refused and changes nothing', async () => {
  const pins = groups.slice(0, limits.chats_pinned_max);
  for (const id of pins) await pin(id);
  const before = await list();
  const refused = await service.app(ben, 'PUT', `/api/chats/${group(-1)}/list_pin`);
  expect([refused.status, refused.body.description]).toEqual([400, 'Bad Request: too many pinned chats']);
  expect(await list()).toEqual(before);
  // When the person leaves a pinned chat, another chat can be pinned.
  await call('POST', `/${pins[0]}/leave`);
  await pin(group(-1));
  expect((await list())[0]).toMatchObject({ id: group(-1), list_pin: limits.chats_pinned_max + 1 });
});

test('a pinned chat keeps its position when other chats are pinned or archived, even if it is missing in the Redis list', async () => {
  const joined = (await service.newGroup(ann, 'Joined', [])) as number;
  await sql(
    `insert into chat_members (chat_id, member_id, is_bot, status) values ($1, $2, false, 'member')`,
    ...[joined, ben.id],
  );
  await sql('insert into chat_places (user_id, chat_id, pin) values ($1, $2, 1)', ben.id, joined);
  await pin(group(0));
  await archive(group(1));
  const places = await sql('select chat_id, pin from chat_places where user_id = $1 order by pin', ben.id);
  expect(places.map(({ chat_id, pin }) => [Number(chat_id), pin])).toEqual([
    [joined, 1],
    [group(0), 2],
    [group(1), null],
  ]);
});

test('simultaneous pins do not exceed the limit', async () => {
  const answers = await Promise.all(
    groups.map((id, n) => service.app(ben, 'PUT', `/api/chats/${id}/list_pin`, undefined, n % 2)),
  );
  const pinned = answers.filter(({ status }) => status === 200);
  expect(pinned).toHaveLength(limits.chats_pinned_max);
  expect((await list()).filter(({ list_pin }) => list_pin)).toHaveLength(limits.chats_pinned_max);
});

test('archiving a chat moves it to the list of archived chats until it gets a message', async () => {
  const [first, second] = [group(1), group(3)];
  await archive(first);
  await archive(second);
  expect(await ids()).toEqual(without(first, second));
  expect(await archived()).toEqual([first, second]);
  expect(await ids('&archived=true', 1)).toEqual([first, second]);
  expect(await call('GET', '?limit=2')).toMatchObject({ archived_count: 2 });
  expect(await call('GET', `/${first}`)).toMatchObject({ archived: true });
  await say(first);
  expect(await archived()).toEqual([second]);
  expect(await ids()).toContain(first);
  expect(await call('GET', `/${first}`)).not.toHaveProperty('archived');
  await call('DELETE', `/${second}/archive`);
  expect([await archived(), (await ids()).length]).toEqual([[], groups.length]);
  expect(await call('GET', '')).not.toHaveProperty('archived_count');
});

test('an archived chat that is muted leaves the archive only with the first message after the chat is unmuted', async () => {
  const quiet = group(0);
  await mute(quiet);
  await archive(quiet);
  await say(quiet);
  expect(await archived()).toEqual([quiet]);
  await call('DELETE', `/${quiet}/mute`);
  expect(await archived()).toEqual([quiet]);
  await say(quiet);
  expect(await archived()).toEqual([]);
  // If a message has moved a chat out of the archive, muting the chat does not archive it again.
  await mute(quiet);
  expect(await archived()).toEqual([]);
  expect(await sql('select 1 from chat_places where user_id = $1', ben.id)).toEqual([]);
});

test('if a message moves a chat out of the archive, the chat stays in the list after the message is deleted', async () => {
  await archive(group(0));
  const { message_id } = await say(group(0));
  await resultOf(service.app(ann, 'DELETE', `/api/chats/${group(0)}/messages/${message_id}`));
  expect(await archived()).toEqual([]);
  await loseChats();
  expect(await archived()).toEqual([]);
});

test('an archived chat with new messages leaves the archive when its mute expires', async () => {
  const quiet = group(0);
  await mute(quiet);
  await archive(quiet);
  await say(quiet);
  await sql("update chat_mutes set until = now() - interval '1 s' where user_id = $1", ben.id);
  expect(await archived()).toEqual([]);
});

test('a chat cannot be pinned and archived at the same time', async () => {
  const one = group(0);
  await pin(one);
  await archive(one);
  expect([await archived(), (await list()).filter(({ list_pin }) => list_pin)]).toEqual([[one], []]);
  await pin(one);
  expect([await archived(), (await list())[0]]).toMatchObject([[], { id: one, list_pin: 1 }]);
  await call('DELETE', `/${one}/archive`);
  expect((await list())[0]).toMatchObject({ id: one, list_pin: 1 });
});

test('a pin affects only the person who set it, and only members of a chat can pin or archive the chat', async () => {
  await pin(group(-1));
  await archive(group(-2));
  const { items } = await resultOf(service.app(ann, 'GET', '/api/chats'));
  expect(items.map(({ id }: Listed) => id)).toEqual(groups);
  const eve = await service.newUser('eve');
  for (const place of ['list_pin', 'archive'])
    for (const verb of ['PUT', 'DELETE']) {
      const refused = await service.app(eve, verb, `/api/chats/${group(0)}/${place}`);
      expect([verb, place, refused.status]).toEqual([verb, place, 403]);
    }
  expect((await service.app(eve, 'PUT', '/api/chats/4711/list_pin')).status).toBe(404);
  expect((await service.app(eve, 'PUT', '/api/chats/4711/archive')).status).toBe(404);
});

test('chats are still pinned or archived after Redis has lost their data', async () => {
  await pin(group(-1));
  await archive(group(-2));
  const before = [await list(), await list('&archived=true')];
  await loseChats();
  expect([await list(), await list('&archived=true')]).toEqual(before);
});

test('an export shows which chats are pinned or archived, and deleting the account removes the pins and the archive', async () => {
  await pin(group(-1));
  await archive(group(-2));
  const answer = await fetch(`${service.fronts[0].url}/api/me/export`, {
    headers: { authorization: `Bearer ${ben.token}` },
  });
  const chats = (await answer.text())
    .split('\n')
    .filter((line) => line.startsWith('{"kind":"chat"'))
    .map((line) => JSON.parse(line));
  const places = chats.map(({ chat, list_pin, archived: away }) => [chat.id, list_pin, away]);
  expect(places.filter(([, list_pin, away]) => list_pin || away)).toEqual(
    expect.arrayContaining([
      [group(-1), 1, undefined],
      [group(-2), undefined, true],
    ]),
  );
  expect(await sql('select 1 from chat_places where user_id = $1', ben.id)).toHaveLength(2);
  await resultOf(service.app(ben, 'DELETE', '/api/me', { confirm: true }));
  expect(await sql('select 1 from chat_places where user_id = $1', ben.id)).toEqual([]);
});
