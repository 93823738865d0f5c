import { rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createFlusher } from '../../src/journal/flusher.js';
import { limits } from '../../src/limits.js';
import { RedisHints } from '../../src/redis/hints.js';
import { messageFlags } from '../../src/store/core/codec.js';
import { tellFlushed } from '../../src/store/core/flush_hints.js';
import { gate } from '../journal/support.js';
import { call, dieUnnoted, type Reply } from '../support/keyed.js';
import {
  hotTtlMs,
  makeDirect,
  type Person,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
  within,
} from '../support/store.js';

let cluster: TestCluster;
let node: TestNode;
let user: Person;
let bot: Person;
const ends: Array<() => unknown> = [];

const lost = { ok: false, error_code: 503 };

beforeEach(async () => {
  cluster = await startCluster();
  node = await cluster.node();
  ({ user, bot } = await makeDirect(node));
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  await cluster.close();
});

/**
 * Starts a flusher that gets hints. `hears` returns false to drop a flush request. Returns the flusher's
 * connection to Redis.
 */
async function startFlusher(
  options: { readonly hears?: () => boolean; readonly onStep?: () => Promise<void> | undefined } = {},
): Promise<{ close(): Promise<void> }> {
  const { connection, runner, shards, keys } = await cluster.node();
  const { hears = () => true, onStep } = options;
  const hints = new RedisHints(cluster.redis.url, 'flush', () => undefined);
  const listen: typeof hints.listen = (channel, listener) =>
    hints.listen(channel, (hint) => hears() && listener(hint));
  const flusher = createFlusher({
    ...{ connection, runner, shards, keys, hotTtlMs, intervalMs: 250, hints: { listen } },
    ...(onStep && { onStep }),
  });
  flusher.start();
  await expect.poll(() => flusher.stats().partitions, { timeout: 10_000 }).toBe(4);
  ends.push(async () => {
    await flusher.stop({ msMax: 2_000 });
    hints.close();
  });
  return connection;
}

/** Keeps flushers from committing. They write to this table in each batch. */
async function holdCommits(): Promise<() => Promise<void>> {
  const urls = cluster.shardUrls.length > 0 ? cluster.shardUrls : [cluster.databaseUrl];
  const clients = urls.map((connectionString) => new pg.Client({ connectionString }));
  for (const client of clients) {
    await client.connect();
    await client.query('begin');
    await client.query('lock table partitions in share mode');
  }
  const release = async () => {
    for (const client of clients.splice(0)) await client.end();
  };
  ends.push(release);
  return release;
}

const byAccount = (account: number) => ({ account, onGone: () => undefined });
const asked = { prefer: 'durable' };
const send = (text: string, key = '', how: object = asked): Promise<Reply> =>
  call(node, bot, 'sendMessage', { chat_id: user.id, text }, key, how);
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
const parsed = ({ body }: Reply): any => JSON.parse(body);
// biome-ignore lint/suspicious/noExplicitAny: see above
async function resultOf(reply: Promise<Reply>): Promise<any> {
  const answer = parsed(await reply);
  expect(answer, JSON.stringify(answer)).toMatchObject({ ok: true });
  return answer.result;
}
const rowsOf = (id: number) => node.written.rows`
  select 1 from messages where chat_id = ${bot.id} and user_id = ${user.id} and message_id = ${id}`;

describe('durable calls', () => {
  it('a durable call is answered only after its message is committed', async () => {
    await startFlusher();
    const release = await holdCommits();
    const reply = send('kept');
    expect(await within(300, reply)).toBe('late');
    await release();
    const { message_id } = await resultOf(reply);
    expect(await rowsOf(message_id)).toHaveLength(1);
  });

  it('a durable call does not delay other calls of the same chat', async () => {
    await startFlusher();
    const release = await holdCommits();
    const durable = send('kept', '', { prefer: 'respond-async, durable' });
    const usual = await resultOf(send('usual', '', {}));
    expect(await within(100, durable)).toBe('late');
    await release();
    expect((await resultOf(durable)).message_id).not.toBe(usual.message_id);
  });

  it('a durable edit never becomes a pending edit, because a pending edit is only in Redis', async () => {
    await startFlusher();
    const { message_id } = await resultOf(send('a'));
    const edit = (text: string, how: object) =>
      call(node, bot, 'editMessageText', { chat_id: user.id, message_id, text, coalesce: true }, '', how);
    await resultOf(edit('b', asked));
    expect(parsed(await edit('c', asked))).toMatchObject({ ok: false, error_code: 429 });
    expect(await resultOf(edit('d', {}))).toMatchObject({ text: 'd', edit_pending: true });
  });

  it.each([
    ['a message', ''],
    ['an inline message', 'inline'],
  ])('that repeats a pending edit of %s is confirmed only once the edit is stored', async (_, kind) => {
    await startFlusher();
    const chat = { id: bot.id, user: user.id };
    const via = { origin: { via: bot.sender.profile }, flags: messageFlags.inline };
    const sent = kind === '' ? text('a') : { ...text('a'), ...via };
    const sender = kind === '' ? bot.sender : user.sender;
    const { id } = await node.store.messages.send(chat, sender, sent);
    const place =
      kind === ''
        ? { chat_id: user.id, message_id: id }
        : { inline_message_id: node.store.inlineIds.idOf(bot.id, { chat, messageId: id }) };
    const edit = (text: string, key: string, how: object) =>
      call(node, bot, 'editMessageText', { ...place, text, coalesce: true }, key, how);
    await resultOf(edit('b', '', {}));
    node.store.pendingEdits.stop();
    await dieUnnoted(node, () => edit('c', 'k1', {}));
    expect(parsed(await edit('c', 'k1', asked))).toMatchObject({ ok: false, error_code: 429 });
    const partition = cluster.keys.partitions.of(bot.id);
    const textStored = async () => {
      await node.store.pendingEdits.apply(partition);
      const [message] = await node.store.messages.readMany(chat, bot.sender, [id]);
      return message?.record.content.text;
    };
    await expect.poll(textStored).toBe('c');
    const release = await holdCommits();
    const repeated = edit('c', 'k1', asked);
    expect(await within(300, repeated)).toBe('late');
    await release();
    await resultOf(repeated);
  });

  it('is every change of a front with the setting DURABLE, and no read', async () => {
    await startFlusher();
    const release = await holdCommits();
    const reply = send('kept', '', { durable: true });
    const read = call(node, user, `GET /api/chats/${bot.id}`, {}, '', { durable: true });
    expect(await within(300, reply)).toBe('late');
    expect((await read).status).toBe(200);
    await release();
    await resultOf(reply);
  });

  it('a durable call that Postgres does not commit in time gets an error, and can be repeated under its key', async () => {
    await startFlusher();
    const release = await holdCommits();
    const first = await send('once', 'k1');
    expect(parsed(first)).toEqual({
      ...lost,
      description: 'Service Unavailable: the change may be lost, retry after 1',
      parameters: { retry_after: 1 },
    });
    expect(node.store.durability.stats).toMatchObject({ waiting: 0, bytes: 0, unconfirmed: 1 });
    await release();
    const { message_id } = await resultOf(send('once', 'k1'));
    expect((await resultOf(send('next'))).message_id).toBe(message_id + 1);
  });

  it('a repeated durable call waits until the change of the first call is committed', async () => {
    await startFlusher();
    const { message_id } = await resultOf(send('source'));
    const copy = () =>
      call(
        ...([node, bot, 'copyMessage'] as const),
        ...([{ chat_id: user.id, from_chat_id: user.id, message_id }, 'k1', asked] as const),
      );
    const release = await holdCommits();
    expect(parsed(await copy())).toMatchObject(lost);
    const repeated = copy();
    expect(await within(300, repeated)).toBe('late');
    await release();
    expect(await rowsOf((await resultOf(repeated)).message_id)).toHaveLength(1);
  });

  it('a durable call gets an error if Redis loses its data before the commit', async () => {
    await startFlusher();
    await holdCommits();
    const reply = send('lost');
    expect(await within(300, reply)).toBe('late');
    await cluster.redis.stop('SIGKILL');
    rmSync(join(cluster.redis.dir, 'appendonlydir'), { recursive: true, force: true });
    await cluster.redis.start();
    expect(parsed(await reply)).toMatchObject(lost);
  });

  it('a durable call gets an error if Redis was replaced after the change, even if the new journal is empty', async () => {
    const partition = cluster.keys.partitions.of(bot.id);
    await node.connection.client.del(cluster.keys.journal(partition));
    const waitUnder = (run: string) =>
      node.store.durability.run(
        byAccount(0),
        async (changes) => changes.set(partition, run).size,
        (answer) => answer,
      );
    expect(await waitUnder(node.runner.runIdOf(partition) as string)).toBe(1);
    await expect(waitUnder('another run')).rejects.toMatchObject({ kind: 'not_durable' });
  });

  it('a durable call gets an error if a later incarnation is announced, whose commits do not cover its change', async () => {
    await startFlusher();
    await holdCommits();
    const reply = send('kept');
    expect(await within(300, reply)).toBe('late');
    const partition = cluster.keys.partitions.of(bot.id);
    const later = limits.versions_per_incarnation * (limits.incarnations_max - 1);
    tellFlushed(node.runner, cluster.keys, [[partition, later]]);
    expect(parsed((await within(1_000, reply)) as Reply)).toMatchObject(lost);
  });

  it('a durable call that fails is answered at once', async () => {
    await startFlusher();
    await holdCommits();
    const refused = call(node, bot, 'sendMessage', { chat_id: user.id, text: '' }, '', asked);
    expect((await refused).status).toBe(400);
    const gone = call(node, bot, 'deleteMessage', { chat_id: user.id, message_id: 999 }, 'k', asked);
    expect((await gone).status).toBe(400);
  });

  it.each([
    ['the hint of the flusher', { told: false, heard: true }],
    ['the question to the flusher', { told: true, heard: false }],
  ])('is answered although %s is lost', async (_, { told, heard }) => {
    const drops = { count: 0 };
    node.hooks.hint = (channel) => {
      if (channel !== cluster.keys.flushed() || told) return true;
      drops.count++;
      return false;
    };
    await startFlusher({
      hears: () => {
        if (!heard) drops.count++;
        return heard;
      },
    });
    for (let i = 0; i < 5; i++) await resultOf(send('kept'));
    expect(drops.count).toBeGreaterThan(0);
  });

  it('a durable call is answered after another flusher takes over from a dead one', async () => {
    const stopped = gate();
    const first = await startFlusher({ onStep: () => stopped.wait() });
    await resultOf(send('not flushed', '', {}));
    await stopped.reached;
    // Without Redis, the first flusher can neither renew its leases nor announce anything.
    await first.close();
    const { client } = node.connection;
    for (const partition of [0, 1, 2, 3]) await client.del(cluster.keys.flushLease(partition));
    await client.del(cluster.keys.flushers());
    await startFlusher();
    const { message_id } = await resultOf(send('kept'));
    expect(await rowsOf(message_id)).toHaveLength(1);
    stopped.open();
  });

  it('a durable call wakes a flusher that pauses after a batch', async () => {
    await startFlusher();
    await resultOf(send('warms up'));
    const began = performance.now();
    // The flusher would otherwise pause for a second after each batch.
    for (let i = 0; i < 5; i++) await resultOf(send('quick'));
    expect(performance.now() - began).toBeLessThan(2_500);
  });
});

describe('the number of durable calls', () => {
  const waitForever = (account: number) =>
    node.store.durability.run(
      byAccount(account),
      () => new Promise<string>(() => undefined),
      () => 0,
    );

  it('is bounded, and further calls change nothing', async () => {
    for (let i = 0; i < limits.durable_calls_max; i++) void waitForever(i);
    expect(parsed(await send('too many'))).toMatchObject({ ok: false, error_code: 429 });
    expect((await resultOf(send('usual', '', {}))).message_id).toBe(1);
  });

  it('is bounded for each account, and the calls of one account do not keep out those of another', async () => {
    await startFlusher();
    const other = await makeDirect(node);
    for (let i = 0; i < limits.durable_calls_per_account_max; i++) void waitForever(user.id);
    expect(parsed(await send('too many'))).toMatchObject({ ok: false, error_code: 429 });
    const own = call(node, user, `POST /api/chats/${bot.id}/messages`, { text: 'a' }, '', asked);
    await expect(own).rejects.toMatchObject({ code: 429 });
    const params = { chat_id: other.user.id, text: 'kept' };
    await resultOf(call(node, other.bot, 'sendMessage', params, '', asked));
  });

  it('drops when the caller of an unanswered call disconnects', async () => {
    await startFlusher();
    await holdCommits();
    let disconnect = () => {};
    const reply = send('kept', '', {
      ...asked,
      onAbort: (listener: () => void) => {
        disconnect = listener;
      },
    });
    expect(await within(300, reply)).toBe('late');
    expect(node.store.durability.stats.waiting).toBe(1);
    disconnect();
    expect(parsed((await within(1_000, reply)) as Reply)).toMatchObject(lost);
    expect(node.store.durability.stats).toMatchObject({ waiting: 0, bytes: 0, unconfirmed: 0 });
  });

  it('counts the bytes of an answer, not its characters', async () => {
    await startFlusher();
    const release = await holdCommits();
    const reply = send('\u00e4'.repeat(1_000));
    await expect.poll(() => node.store.durability.stats.bytes).toBeGreaterThan(2_000);
    await release();
    await resultOf(reply);
    expect(node.store.durability.stats.bytes).toBe(0);
  });

  it('the number of durable calls is bounded by the bytes of their answers', async () => {
    await startFlusher();
    const release = await holdCommits();
    const made = await resultOf(send('usual', '', {}));
    const partition = cluster.keys.partitions.of(bot.id);
    const large = node.store.durability.run(
      byAccount(0),
      async (changes) => {
        changes.set(partition, node.runner.runIdOf(partition) as string);
        return 'large';
      },
      () => limits.durable_bytes_max,
    );
    expect(await within(100, large)).toBe('late');
    expect(parsed(await send('too many'))).toMatchObject({ ok: false, error_code: 429 });
    await release();
    expect(await large).toBe('large');
    expect((await resultOf(send('kept'))).message_id).toBe(made.message_id + 1);
  });
});

describe('durable calls add few scripts', () => {
  const scriptsOf = async (run: () => Promise<unknown>) => {
    const scripts: string[] = [];
    node.hooks.call = (name, next) => {
      scripts.push(name);
      return next();
    };
    await run();
    return scripts;
  };

  it('a call that is not durable runs no extra script', async () => {
    await startFlusher();
    await resultOf(send('warms up', '', {}));
    const scripts = await scriptsOf(() => resultOf(send('usual', '', {})));
    expect(scripts.filter((name) => name.startsWith('journal/') || name.startsWith('messages/'))).toEqual([
      'messages/send_to_user',
    ]);
  });

  it('the durable calls of one run read the journal progress together', async () => {
    await startFlusher();
    await resultOf(send('warms up'));
    const release = await holdCommits();
    const scripts = await scriptsOf(async () => {
      const replies = Array.from({ length: 12 }, (_, i) => send(`message ${i}`));
      expect(await within(50, Promise.race(replies))).toBe('late');
      await release();
      const ids = await Promise.all(replies.map(async (reply) => (await resultOf(reply)).message_id));
      expect(new Set(ids).size).toBe(12);
    });
    const count = (name: string) => scripts.filter((each) => each === name).length;
    expect(count('messages/send_to_user')).toBe(12);
    expect(count('journal/progress')).toBeLessThanOrEqual(3);
  });
});

describe('every change of stored data can be durable', () => {
  const by = (who: Person, method: string, params: object, how: object = {}) =>
    resultOf(call(node, who, method, params, '', how));

  async function chats() {
    const group = await by(user, 'POST /api/chats', { type: 'group', title: 'Group' });
    const channel = await by(user, 'POST /api/chats', { type: 'channel', title: 'Channel' });
    for (const { id } of [group, channel])
      await by(user, `PUT /api/chats/${id}/members/${bot.id}`, {
        status: 'administrator',
        rights: { can_post_messages: true, can_pin_messages: true, can_delete_messages: true },
      });
    return { group: group.id as number, channel: channel.id as number };
  }

  it('every durable change waits for its commit, in direct and shared chats', async () => {
    const { group, channel } = await chats();
    await startFlusher();
    const own = await by(bot, 'sendMessage', { chat_id: user.id, text: 'a' });
    const shared = await by(bot, 'sendMessage', { chat_id: group, text: 'a' });
    const question = { question: 'Which?', options: ['a', 'b'] };
    const poll = await by(bot, 'sendPoll', { chat_id: group, ...question });
    const post = await by(bot, 'createPost', { chat_id: channel, text: 'a' });
    const changes: Array<readonly [Person, string, object]> = [
      [bot, 'sendMessage', { chat_id: group, text: 'b' }],
      [user, `POST /api/chats/${group}/messages`, { text: 'b' }],
      [user, `POST /api/chats/${bot.id}/messages`, { text: 'b' }],
      [bot, 'editMessageText', { chat_id: user.id, message_id: own.message_id, text: 'b' }],
      [bot, 'editMessageText', { chat_id: group, message_id: shared.message_id, text: 'b' }],
      [bot, 'pinChatMessage', { chat_id: user.id, message_id: own.message_id }],
      [bot, 'pinChatMessage', { chat_id: group, message_id: shared.message_id }],
      [bot, 'unpinChatMessage', { chat_id: group }],
      [user, `POST /api/chats/${group}/messages/${poll.message_id}/poll`, { option_ids: [0] }],
      [bot, 'stopPoll', { chat_id: group, message_id: poll.message_id }],
      [user, `POST /api/posts/${post.external_id}/reactions`, { emoji: '👍' }],
      [user, `DELETE /api/posts/${post.external_id}/reactions`, { emoji: '👍' }],
      [bot, 'copyMessage', { chat_id: group, from_chat_id: user.id, message_id: own.message_id }],
      [bot, 'deleteMessages', { chat_id: user.id, message_ids: [own.message_id] }],
      [bot, 'deleteMessage', { chat_id: group, message_id: shared.message_id }],
    ];
    for (const [who, method, params] of changes) {
      const release = await holdCommits();
      const reply = call(node, who, method, params, '', asked);
      expect([method, await within(60, reply)]).toEqual([method, 'late']);
      await release();
      expect([method, parsed(await reply).ok]).toEqual([method, true]);
    }
  });
});
