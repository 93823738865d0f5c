/**
 * Writes journaled entities from Redis to Postgres again, after Postgres was restored to an earlier state. Writes an
 * entity only if Redis has a newer version than Postgres, so an older record never replaces a newer one. Several
 * flushers may therefore rewrite at the same time or repeatedly, even while journals are flushed.
 */

import { finishRewrite, loadRewrites, type Rewrite, renewWebhooks } from '../postgres/messages/history.js';
import { type Call, type Pool, statement } from '../postgres/pool.js';
import type { Shards } from '../postgres/shards.js';
import type { RedisConnection, RedisServers } from '../redis/connection.js';
import { emojiColumn, messageHeader, pack, unpack } from '../store/core/codec.js';
import { groupBy, piecesOf } from '../store/core/groups.js';
import { type Keys, parseChat, partitionOfPost, postNumber } from '../store/core/keys.js';
import type { Poll, PollRecord, ResultsRecord, VoteRecord } from '../store/core/poll_record.js';
import { botOf } from '../store/core/queue_ids.js';
import type { Time } from '../time.js';
import type { JournalEntry, SequenceChange } from './batch.js';
import { rootOf, scanKeys } from './forget.js';
import { journalLimits as limits } from './limits.js';
import { journalTables } from './tables.js';
import {
  incarnationCheck,
  type OnQuarantine,
  readIncarnations,
  writeEntries,
  writeSequences,
} from './write.js';

export interface RewriteOptions {
  readonly pool: Pool;
  readonly shards: Shards;
  readonly connection: RedisServers;
  readonly keys: Keys;
  readonly onQuarantine: OnQuarantine;
  readonly time: Time;
}

interface Found {
  readonly entries: JournalEntry[];
  readonly sequences: SequenceChange[];
  readonly hooked: Array<{ readonly bot: number; readonly version: number }>;
}

/** A Redis key to check. The entity under this key is written to Postgres again if its version is above `after`. */
interface Wanted {
  readonly key: string;
  readonly partition: number;
  readonly after: number;
}

type Fields = Readonly<Record<string, Buffer>>;

const nothing = Buffer.alloc(0);
const messages = journalTables.find(({ kind }) => kind === 'msg') as (typeof journalTables)[number];
const posts = journalTables.find(({ kind }) => kind === 'post') as (typeof journalTables)[number];

/** Returns the name of an entity, for example `msg:12.5:7` for the key `{tag}:msg:12.5:7`. */
const entityOf = (key: string): string => key.slice(key.indexOf('}') + 2);
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

/**
 * Adds the greatest message id, the pinned message and the reply keyboards of a chat. The version of each is that of
 * the chat's last change.
 */
function addChat(found: Found, partition: number, name: string, fields: Fields): void {
  const chat = parseChat(name);
  const version = numberIn(fields, 'v');
  const key = [chat.id, chat.user, numberIn(fields, 's')];
  found.sequences.push({ table: messages, partition, key, version, incarnation: numberIn(fields, 'i') });
  const pin = numberIn(fields, 'pin');
  const keyboards = String(fields.kb ?? '');
  const image = keyboards !== '' ? pack([pin, keyboards]) : pin === 0 ? nothing : pack([pin]);
  found.entries.push({ partition, version, entity: `pin:${name}`, image, state: '' });
}

/** Adds the reaction counts of a post. The count of an emoji is 0 if all its reactions were removed. */
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

async function addReactions(
  time: Time,
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
  const seconds = time.nowSeconds();
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

function addPoll(found: Found, id: number, fields: Fields): void {
  const partition = partitionOfPost(id);
  const place = `${partition}:${postNumber(id)}`;
  const version = numberIn(fields, 'v');
  const add = (entity: string, image: Buffer) =>
    found.entries.push({ partition, version, entity, image, state: '' });
  if (fields.x !== undefined) {
    add(`poll:${place}`, nothing);
    return;
  }
  const definition = unpack<Poll>(fields.d as Buffer);
  const counts = definition.options.map((_, i) => numberIn(fields, `n:${i}`));
  add(`poll:${place}`, pack([String(fields.c), numberIn(fields, 'b'), definition] satisfies PollRecord));
  const stopped = fields.z === undefined ? 0 : 1;
  add(`results:${place}`, pack([numberIn(fields, 'u'), stopped, ...counts] satisfies ResultsRecord));
}

/** Adds the recent votes in a poll. For a retracted vote, `image` is empty. */
function addVotes(time: Time, found: Found, id: number, fields: Fields): void {
  const partition = partitionOfPost(id);
  const version = numberIn(fields, 'v');
  const seconds = time.nowSeconds();
  for (const [user, options] of Object.entries(fields)) {
    if (!/^\d+$/.test(user)) continue;
    const image = options.length === 0 ? nothing : pack([String(options), seconds] satisfies VoteRecord);
    const entity = `vote:${partition}:${postNumber(id)}:${user}`;
    found.entries.push({ partition, version, entity, image, state: '' });
  }
}

async function gather(
  found: Found,
  { pool, shards, time }: RewriteOptions,
  { client }: RedisConnection,
  { key, partition, after }: Wanted,
): Promise<void> {
  const entity = entityOf(key);
  const [kind = '', name = ''] = entity.split(/:(.*)/s);
  if (kind === 'queue_state') {
    const [hook, mask, asked, own] = await client.hmget(key, 'hook_version', 'mask', 'mv', 'own');
    if (Number(hook) > 0) found.hooked.push({ bot: botOf(Number(name)), version: Number(hook) });
    const [version, image] = [Number(asked ?? 0), pack([Number(own ?? mask)])];
    if (version > after) found.entries.push({ partition, version, entity: `mask:${name}`, image, state: '' });
    return;
  }
  if (kind === 'msg') {
    const image = await client.getBuffer(key);
    const version = image === null ? 0 : messageHeader(image).version;
    if (image !== null && version > after)
      found.entries.push({ partition, version, entity, image, state: '' });
    return;
  }
  const version = await client.hget(key, 'v');
  if (version === null || Number(version) <= after) return;
  const fields = await client.hgetallBuffer(key);
  if (kind === 'chat') addChat(found, partition, name, fields);
  else if (kind === 'post') await addPost(found, pool, Number(name), fields);
  else if (kind === 'poll') addPoll(found, Number(name), fields);
  else {
    const id = Number(name.slice(0, name.indexOf(':')));
    if (kind === 'voted') addVotes(time, found, id, fields);
    else await addReactions(time, found, pool, shards.control.pool, id, fields);
  }
}

async function writePostNumber(
  { pool, connection, keys }: RewriteOptions,
  partition: number,
  check: Call,
): Promise<void> {
  const [number, incarnation, version] =
    (await connection.at(partition)?.client.hmget(keys.meta(partition), 'post', 'post_inc', 'ver')) ?? [];
  if (!number || number === '0') return;
  const key = [partition, Number(number)];
  const last = { version: Number(version ?? 0), incarnation: Number(incarnation ?? 0) };
  await writeSequences(pool, posts, [{ table: posts, partition, key, ...last }], check);
}

async function sweep(
  options: RewriteOptions,
  node: RedisConnection,
  own: readonly Rewrite[],
  check: Call,
): Promise<number> {
  const { pool, shards, keys, onQuarantine, time } = options;
  const places = new Map(
    own.flatMap(({ partition, rewrite_after }) =>
      [...keys.journaledRoots(partition), keys.queueStateRoot(partition)].map(
        (root) => [root, { partition, after: rewrite_after }] as const,
      ),
    ),
  );
  let written = 0;
  for (let cursor = '0'; ; ) {
    const began = time.monotonic();
    const [next, page] = await node.client.scan(cursor, 'COUNT', scanKeys);
    const wanted = page.flatMap((key) => {
      const place = places.get(rootOf(key));
      return place === undefined || key.endsWith(':ticket') ? [] : [{ key, ...place }];
    });
    for (const batch of piecesOf(wanted, limits.rewrite_batch_keys_max)) {
      const found: Found = { entries: [], sequences: [], hooked: [] };
      await Promise.all(batch.map((each) => gather(found, options, node, each)));
      await writeEntries(pool, found.entries, onQuarantine, check);
      await writeSequences(pool, messages, found.sequences, check);
      if (pool === shards.control.pool) await renewWebhooks(pool, found.hooked);
      written += found.entries.length;
    }
    cursor = next;
    if (cursor === '0') return written;
    const due = (page.length / limits.rewrite_keys_per_second) * 1_000;
    await time.sleep(Math.max(0, due - (time.monotonic() - began)));
  }
}

/**
 * Writes the entities that Postgres has lost, for the partitions that this process flushes. Returns how many entities
 * were written. Throws the errors of Redis or Postgres. Also fails if a partition's incarnation is raised meanwhile,
 * because Redis may then have lost entities that were already read. After a failure, the caller repeats the whole
 * rewrite.
 */
export async function rewritePartitions(options: RewriteOptions, held: readonly number[]): Promise<number> {
  const { pool, shards, connection } = options;
  const due = (await loadRewrites(pool)).filter(({ partition }) => held.includes(partition));
  let written = 0;
  for (const [node, own] of groupBy(due, ({ partition }) => connection.at(partition))) {
    if (node === null) continue;
    const partitions = own.map(({ partition }) => partition);
    const check = incarnationCheck(await readIncarnations(pool, partitions));
    written += await sweep(options, node, own, check);
    for (const rewrite of own) {
      if (shards.of(rewrite.partition).pool === pool)
        await writePostNumber(options, rewrite.partition, check);
      await finishRewrite(pool, rewrite);
    }
  }
  return written;
}
