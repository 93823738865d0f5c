/**
 * After Postgres was restored to an earlier state, writes to it again the journaled entities in Redis that are newer
 * than its version. Rows are written as a flush would write them: an older image never replaces a newer one. Any
 * number of flushers may therefore do it, any number of times, while journals are flushed.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { nowSeconds } from '../clock.js';
import { limits } from '../limits.js';
import { finishRewrite, loadRewrites, type Rewrite, renewWebhooks } from '../postgres/messages/history.js';
import { type Pool, statement } from '../postgres/pool.js';
import type { Shards } from '../postgres/shards.js';
import type { RedisConnection, RedisServers } from '../redis/connection.js';
import { emojiColumn, messageHeader, pack, unpack } from '../store/core/codec.js';
import { type Keys, parseChat, partitionOfPost, postNumber } from '../store/core/keys.js';
import type { JournalEntry, SequenceChange } from './batch.js';
import { journalTables } from './tables.js';
import { type OnQuarantine, writeEntries, writeSequences } from './write.js';

export interface RewriteOptions {
  /** The database that was restored to an earlier state. */
  readonly pool: Pool;
  readonly shards: Shards;
  readonly connection: RedisServers;
  readonly keys: Keys;
  readonly onQuarantine: OnQuarantine;
}

/** Rows to write for one batch of keys. */
interface Found {
  readonly entries: JournalEntry[];
  readonly sequences: SequenceChange[];
  /** Bots whose queue has a version of their webhook settings. */
  readonly hooked: Array<{ readonly bot: number; readonly version: number }>;
}

type Fields = Readonly<Record<string, Buffer>>;

const scanKeys = 1_000;
const nothing = Buffer.alloc(0);
const messages = journalTables.find(({ kind }) => kind === 'msg') as (typeof journalTables)[number];
const posts = journalTables.find(({ kind }) => kind === 'post') as (typeof journalTables)[number];

/** Name of an entity in the journal: `msg:12.5:7` of the key `{tag}:msg:12.5:7`. */
const entityOf = (key: string): string => key.slice(key.indexOf('}') + 2);
/** Key prefix of an entity: `{tag}:msg:` of `{tag}:msg:12.5:7`. */
const rootOf = (key: string): string => key.slice(0, key.indexOf(':', key.indexOf('}') + 2) + 1);
const numberIn = (fields: Fields, name: string): number => Number(String(fields[name] ?? '0'));

const talliesOf = statement(
  'rewrite_tallies',
  'select record from post_tallies where partition = $1 and number = $2 and record is not null',
);
const reactionsOf = statement(
  'rewrite_reactions',
  `select user_id, emoji from post_reactions
    where partition = $1 and number = $2 and user_id = any($3::bigint[]) and record is not null`,
);
const externalIds = statement(
  'rewrite_external_ids',
  "select id, decode(replace(external_id::text, '-', ''), 'hex') as external from users where id = any($1::bigint[])",
);

function messageEntry(partition: number, entity: string, record: Buffer): JournalEntry {
  return { partition, version: messageHeader(record).version, entity, image: record, state: '' };
}

/** Adds the greatest message id of a chat, and its pin, at the version of the chat's last change. */
function addChat(found: Found, partition: number, name: string, fields: Fields): void {
  const chat = parseChat(name);
  const version = numberIn(fields, 'v');
  const key = [chat.id, chat.user, numberIn(fields, 's')];
  found.sequences.push({ table: messages, partition, key, version, incarnation: numberIn(fields, 'i') });
  const pin = numberIn(fields, 'pin');
  const image = pin === 0 ? nothing : pack([pin]);
  found.entries.push({ partition, version, entity: `pin:${name}`, image, state: '' });
}

/** Adds the place of a post and its reaction counts. An emoji without reactions left counts 0. */
async function addPost(found: Found, pool: Pool, id: number, fields: Fields): Promise<void> {
  const [partition, number] = [partitionOfPost(id), postNumber(id)];
  const version = numberIn(fields, 'v');
  const add = (entity: string, image: Buffer) =>
    found.entries.push({ partition, version, entity, image, state: '' });
  const place = `${partition}:${number}`;
  if (fields.x !== undefined) {
    add(`post:${place}`, nothing);
    return;
  }
  add(`post:${place}`, pack([String(fields.c), numberIn(fields, 'm')]));
  const users = numberIn(fields, 'u');
  const counted = Object.keys(fields).flatMap((name) => (name.startsWith('n:') ? [name.slice(2)] : []));
  const { rows } = await pool.query<{ record: Buffer }>(talliesOf, [partition, number]);
  const known = rows.map(({ record }) => unpack<[string, number, number]>(record));
  const first = new Map(known.map(([emoji, , version]) => [emoji, version]));
  for (const emoji of new Set([...counted, ...first.keys()])) {
    const since =
      fields[`f:${emoji}`] === undefined ? (first.get(emoji) ?? version) : numberIn(fields, `f:${emoji}`);
    add(`tally:${place}:${emojiColumn(emoji)}`, pack([emoji, numberIn(fields, `n:${emoji}`), since, users]));
  }
}

/** Adds the recent reactions on a post that differ from those in Postgres. */
async function addReactions(
  found: Found,
  pool: Pool,
  control: Pool,
  id: number,
  fields: Fields,
): Promise<void> {
  const [partition, number] = [partitionOfPost(id), postNumber(id)];
  const version = numberIn(fields, 'v');
  const own = new Map(
    Object.entries(fields).flatMap(([user, emoji]) =>
      /^\d+$/.test(user) ? [[Number(user), String(emoji).split(' ').filter(Boolean)] as const] : [],
    ),
  );
  const ids = [...own.keys()];
  const { rows } = await pool.query<{ user_id: number; emoji: number }>(reactionsOf, [
    partition,
    number,
    ids,
  ]);
  const people = await control.query<{ id: number; external: Buffer }>(externalIds, [ids]);
  const external = new Map(people.rows.map((row) => [row.id, row.external]));
  const stored = new Set(rows.map(({ user_id, emoji }) => `${user_id}:${emoji}`));
  const add = (name: string, image: Buffer) =>
    found.entries.push({
      partition,
      version,
      entity: `react:${partition}:${number}:${name}`,
      image,
      state: '',
    });
  const seconds = nowSeconds();
  for (const [user, emoji] of own) {
    for (const each of emoji) {
      const name = `${user}:${emojiColumn(each)}`;
      const person = external.get(user);
      if (!stored.delete(name) && person) add(name, pack([each, seconds, person]));
      stored.delete(name);
    }
  }
  for (const name of stored) add(name, nothing);
}

/** Reads keys of one server and gathers the entities that are newer than the partition's bound. */
async function gatherKeys(
  pool: Pool,
  control: Pool,
  { client }: RedisConnection,
  wanted: ReadonlyArray<{ readonly key: string; readonly partition: number; readonly after: number }>,
): Promise<Found> {
  const found: Found = { entries: [], sequences: [], hooked: [] };
  await Promise.all(
    wanted.map(async ({ key, partition, after }) => {
      const entity = entityOf(key);
      const [kind = '', name = ''] = entity.split(/:(.*)/s);
      if (kind === 'queue_state') {
        const [hook, mask, asked] = await client.hmget(key, 'hook_version', 'mask', 'mv');
        if (Number(hook) > 0) found.hooked.push({ bot: Number(name), version: Number(hook) });
        const [version, image] = [Number(asked ?? 0), pack([Number(mask)])];
        if (version > after)
          found.entries.push({ partition, version, entity: `mask:${name}`, image, state: '' });
        return;
      }
      if (kind === 'msg') {
        const record = await client.getBuffer(key);
        if (record === null || messageHeader(record).version <= after) return;
        found.entries.push(messageEntry(partition, entity, record));
        return;
      }
      const version = await client.hget(key, 'v');
      if (version === null || Number(version) <= after) return;
      const fields = await client.hgetallBuffer(key);
      if (kind === 'chat') addChat(found, partition, name, fields);
      else if (kind === 'post') await addPost(found, pool, Number(name), fields);
      else await addReactions(found, pool, control, Number(name.slice(0, name.indexOf(':'))), fields);
    }),
  );
  return found;
}

/** Writes the partition's sequence of posts, which belongs to no entity. */
async function writePostNumber({ pool, connection, keys }: RewriteOptions, partition: number): Promise<void> {
  const [number, incarnation, version] =
    (await connection.at(partition)?.client.hmget(keys.meta(partition), 'post', 'post_inc', 'ver')) ?? [];
  if (!number || number === '0') return;
  const key = [partition, Number(number)];
  await writeSequences(pool, posts, [
    { table: posts, partition, key, version: Number(version ?? 0), incarnation: Number(incarnation ?? 0) },
  ]);
}

async function sweep(
  options: RewriteOptions,
  node: RedisConnection,
  own: readonly Rewrite[],
): Promise<number> {
  const { pool, keys, onQuarantine } = options;
  const control = options.shards.control.pool;
  const places = new Map(
    own.flatMap(({ partition, rewrite_after }) =>
      [...keys.journaledRoots(partition), keys.queueStateRoot(partition)].map(
        (root) => [root, { partition, after: rewrite_after }] as const,
      ),
    ),
  );
  let written = 0;
  for (let cursor = '0'; ; ) {
    const began = performance.now();
    const [next, page] = await node.client.scan(cursor, 'COUNT', scanKeys);
    const wanted = page.flatMap((key) => {
      const place = places.get(rootOf(key));
      return place === undefined || key.endsWith(':ticket') ? [] : [{ key, ...place }];
    });
    for (let at = 0; at < wanted.length; at += limits.rewrite_batch_keys_max) {
      const found = await gatherKeys(
        pool,
        control,
        node,
        wanted.slice(at, at + limits.rewrite_batch_keys_max),
      );
      await writeEntries(pool, found.entries, onQuarantine);
      await writeSequences(pool, messages, found.sequences);
      if (pool === control) await renewWebhooks(pool, found.hooked);
      written += found.entries.length;
    }
    cursor = next;
    if (cursor === '0') return written;
    const due = (page.length / limits.rewrite_keys_per_second) * 1_000;
    await sleep(Math.max(0, due - (performance.now() - began)));
  }
}

/**
 * Writes the entities that are due again, for partitions that this process flushes. Returns how many were written.
 * Errors: those of Redis or Postgres; then all of it is repeated.
 */
export async function rewritePartitions(options: RewriteOptions, held: readonly number[]): Promise<number> {
  const { pool, shards, connection } = options;
  const due = (await loadRewrites(pool)).filter(({ partition }) => held.includes(partition));
  const byNode = new Map<RedisConnection, Rewrite[]>();
  for (const rewrite of due) {
    const node = connection.at(rewrite.partition);
    if (node !== null) byNode.set(node, [...(byNode.get(node) ?? []), rewrite]);
  }
  let written = 0;
  for (const [node, own] of byNode) {
    written += await sweep(options, node, own);
    for (const rewrite of own) {
      if (shards.of(rewrite.partition).pool === pool) await writePostNumber(options, rewrite.partition);
      await finishRewrite(pool, rewrite);
    }
  }
  return written;
}
