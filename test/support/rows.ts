/** Compares the entities in Redis with the rows of Postgres, one by one. */
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { unpack, unpackMessage } from '../../src/store/core/codec.js';
import { chatText, postId } from '../../src/store/core/keys.js';
import { uuidText } from '../../src/store/core/post_record.js';
import type { TestNode } from './store.js';

interface Row {
  readonly version: number;
  readonly record: Buffer | null;
}
interface ChatKey {
  readonly chat_id: number;
  readonly user_id: number;
}
interface PostKey {
  readonly partition: number;
  readonly number: number;
}
type Reaction = Row & PostKey & { readonly user_id: number; readonly emoji: number };

/**
 * Two texts for each entity: one from Redis and one from Postgres. Both texts must be equal. Entities that were evicted
 * from Redis are omitted from both lists.
 */
interface Sides {
  readonly redis: string[];
  readonly postgres: string[];
}

export async function keysLike({ connection }: TestNode, kind: string): Promise<string[]> {
  const found = await connection.client.keys(`*:${kind}:*`);
  return found.filter((key) => new RegExp(`^\\{[^}]+\\}:${kind}:[^:]+(:\\d+)?$`).test(key));
}

const chatOf = ({ chat_id: id, user_id: user }: ChatKey) => chatText({ id, user });
const idOf = ({ partition, number }: PostKey) => postId(partition, number);
const field = (record: Buffer | null, i: number) => unpack<unknown[]>(record as Buffer)[i];
const columnOf = (emoji: string) =>
  Number.parseInt(createHash('sha1').update(emoji).digest('hex').slice(0, 13), 16);

async function messages(node: TestNode): Promise<Sides> {
  const redis = new Map<string, string>();
  for (const key of await keysLike(node, 'msg')) {
    const bytes = (await node.connection.client.getBuffer(key)) as Buffer;
    const { version, kind } = unpackMessage(bytes);
    const name = key.split(':').slice(2).join(':');
    redis.set(name, `message ${name} ${version} ${kind === 0 ? '-' : bytes.toString('hex')}`);
  }
  const rows = await node.written.query<Row & ChatKey & { message_id: number }>('select * from messages');
  const postgres = rows
    .map((row) => ({ name: `${chatOf(row)}:${row.message_id}`, row }))
    .filter(({ name }) => redis.has(name))
    .map(({ name, row }) => `message ${name} ${row.version} ${row.record?.toString('hex') ?? '-'}`);
  return { redis: [...redis.values()], postgres };
}

async function chats(node: TestNode): Promise<Sides> {
  const sides: Sides = { redis: [], postgres: [] };
  const sequences = await node.written.query<ChatKey & { last_message_id: number; version: number }>(
    'select * from chat_sequences',
  );
  const pins = await node.written.query<Row & ChatKey>('select * from chat_pins');
  for (const key of await keysLike(node, 'chat')) {
    const name = key.split(':')[2] as string;
    const { s, pin, kb, v } = await node.connection.client.hgetall(key);
    sides.redis.push(`chat ${name} ${s} ${pin ?? 0} ${kb ?? ''} ${v}`);
    const sequence = sequences.find((row) => chatOf(row) === name);
    const pinned = pins.find((row) => chatOf(row) === name);
    const version = Math.max(sequence?.version ?? 0, pinned?.version ?? 0);
    const id = pinned?.record ? field(pinned.record, 0) : 0;
    const keyboards = (pinned?.record && field(pinned.record, 1)) ?? '';
    sides.postgres.push(`chat ${name} ${sequence?.last_message_id ?? 0} ${id} ${keyboards} ${version}`);
  }
  return sides;
}

/**
 * Returns a post as stored in Redis: the chat, the message, the number of users and the version. Also returns the
 * count, the first use and the latest reactors of each emoji.
 */
async function hotPost({ connection }: TestNode, key: string): Promise<string> {
  const fields = await connection.client.hgetallBuffer(key);
  const value = (name: string) => String(fields[name] ?? '');
  if (value('x') !== '') return 'gone';
  const emoji = Object.keys(fields).flatMap((name) => (name.startsWith('n:') ? [name.slice(2)] : []));
  const each = emoji.sort().map((one) => {
    const parts = [fields[`l:${one}`], fields[`o:${one}`]];
    const list = Buffer.concat(parts.filter((part) => part !== undefined));
    const users = Array.from({ length: list.length / 16 }, (_, i) =>
      uuidText(list.subarray(i * 16, i * 16 + 16)),
    );
    return `${one} ${value(`n:${one}`)} ${value(`f:${one}`)} ${users}`;
  });
  return [value('c'), value('m'), value('u'), value('v'), ...each].join(' ');
}

/**
 * Returns a post as stored in Postgres, in the form of `hotPost`. Also checks that the counts agree with the
 * reactions.
 */
function coldPost(post: Row & PostKey, tallies: readonly (Row & { emoji: number })[], live: Reaction[]) {
  if (post.record === null) return 'gone';
  const newest = tallies.reduce<Row | null>((a, b) => (a && a.version > b.version ? a : b), null);
  const users = newest ? field(newest.record, 3) : 0;
  expect(new Set(live.map((row) => row.user_id)).size, `users of post ${idOf(post)}`).toBe(users);
  const each = tallies
    .filter(({ record }) => field(record, 1) !== 0)
    .map(({ record, emoji }) => {
      const [name, count, first] = unpack<[string, number, number]>(record as Buffer);
      expect(columnOf(name)).toBe(emoji);
      const by = live.filter((row) => row.emoji === emoji).sort((a, b) => b.version - a.version);
      expect(by.length, `${name} on post ${idOf(post)}`).toBe(count);
      return {
        name,
        line: `${name} ${count} ${first} ${by.map((r) => uuidText(field(r.record, 2) as Buffer))}`,
      };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const [chat, message] = unpack<[string, number]>(post.record);
  const version = Math.max(post.version, newest?.version ?? 0);
  return [chat, message, users, version, ...each.map(({ line }) => line)].join(' ');
}

async function posts(node: TestNode, reactions: readonly Reaction[]): Promise<Sides> {
  const sides: Sides = { redis: [], postgres: [] };
  const rows = await node.written.query<Row & PostKey>('select * from posts');
  const tallies = await node.written.query<Row & PostKey & { emoji: number }>('select * from post_tallies');
  for (const key of await keysLike(node, 'post')) {
    const id = Number(key.split(':')[2]);
    sides.redis.push(`post ${id} ${await hotPost(node, key)}`);
    const row = rows.find((each) => idOf(each) === id);
    const own = tallies.filter((each) => idOf(each) === id);
    const live = reactions.filter((each) => idOf(each) === id);
    sides.postgres.push(`post ${id} ${row ? coldPost(row, own, live) : 'has no row'}`);
  }
  return sides;
}

/**
 * Returns the reactions in the keys of recent users. Skips keys that are older than the previous generation, because
 * they are no longer read and will expire.
 */
async function acted(node: TestNode, reactions: readonly Reaction[]): Promise<Sides> {
  const sides: Sides = { redis: [], postgres: [] };
  const { client } = node.connection;
  for (const key of await keysLike(node, 'acted')) {
    const [post, generation] = key.split(':').slice(2) as [string, string];
    const place = await client.hmget(node.keys.post(Number(post)), 'c', 'x', 'g', 'gp');
    const [chat, gone, now, before] = place;
    if (!chat || gone || (generation !== (now ?? '0') && generation !== before)) continue;
    const { n, v: _, ...users } = await client.hgetall(key);
    expect(Object.values(users).filter((own) => own !== '').length, key).toBe(Number(n ?? 0));
    for (const [user, own] of Object.entries(users)) {
      sides.redis.push(`acted ${post} ${user} ${own.split(' ').sort().join(' ')}`);
      const rows = reactions.filter((r) => idOf(r) === Number(post) && r.user_id === Number(user));
      const emoji = rows.map(({ record }) => field(record, 0)).sort();
      sides.postgres.push(`acted ${post} ${user} ${emoji.join(' ')}`);
    }
  }
  return sides;
}

/** Checks that Postgres has every row of Redis, with the same version and bytes. The journals must be empty. */
export async function expectSameRows(node: TestNode): Promise<void> {
  const reactions = await node.written.query<Reaction>(
    'select * from post_reactions where record is not null',
  );
  const all = await Promise.all([
    messages(node),
    chats(node),
    posts(node, reactions),
    acted(node, reactions),
  ]);
  expect(all.flatMap(({ postgres }) => postgres).sort()).toEqual(all.flatMap(({ redis }) => redis).sort());
}

/**
 * Checks the updates beyond the limits of these bots’ queues. They must be in Postgres unchanged. Returns the number of
 * these updates.
 */
export async function expectBuried(node: TestNode, bots: readonly number[]): Promise<number> {
  const rows = await node.written.query<Row & { bot_id: number; update_id: number }>(
    'select * from dead_updates',
  );
  for (const bot of bots) {
    const own = rows.filter((row) => row.bot_id === bot);
    const state = await node.connection.client.hgetall(node.keys.queueState(bot));
    expect(own.length).toBe(Number(state.dead ?? 0));
    const [[head] = []] = await node.connection.client.xrange(node.keys.queue(bot), '-', '+', 'COUNT', 1);
    if (head) expect(own.every((row) => row.update_id < Number.parseInt(head, 10))).toBe(true);
    for (const { record } of own) {
      const fields = unpack<Buffer[]>(record as Buffer);
      const place = fields.findIndex((each) => String(each) === 'r');
      expect(unpackMessage(fields[place + 1] as Buffer).date).toBeGreaterThan(0);
    }
  }
  return rows.length;
}
