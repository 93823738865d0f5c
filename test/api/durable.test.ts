/**
 * Tests durable calls (decision 0055). All tests share one Redis, one database and one flusher. The flusher pauses much
 * longer than a call waits, so a call is confirmed only if it requests a flush. test/store/durability.test.ts tests
 * what a durable call waits for.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createFlusher } from '../../src/journal/flusher.js';
import { limits } from '../../src/limits.js';
import { RedisHints } from '../../src/redis/hints.js';
import { messageFlags } from '../../src/store/core/codec.js';
import { directChat } from '../../src/store/core/keys.js';
import { eventually, gate } from '../journal/support.js';
import { call, dieUnnoted, type Reply } from '../support/keyed.js';
import { RunningTime } from '../support/running_time.js';
import {
  hotTtlMs,
  makeDirect,
  moveLastEdit,
  type Person,
  pass,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
  within,
} from '../support/store.js';

/** Servers and accounts that a group of tests shares. A group of tests that stops a server uses a separate World. */
interface World {
  readonly cluster: TestCluster;
  readonly node: TestNode;
  readonly time: RunningTime;
  readonly databases: readonly pg.Client[];
  close(): Promise<void>;
}

async function openWorld(): Promise<World> {
  const time = new RunningTime();
  const cluster = await startCluster(4, undefined, time);
  const node = await cluster.node();
  const urls = cluster.shardUrls.length > 0 ? cluster.shardUrls : [cluster.databaseUrl];
  const databases = urls.map((connectionString) => new pg.Client({ connectionString }));
  for (const database of databases) await database.connect();
  return {
    ...{ cluster, node, time, databases },
    async close() {
      for (const database of databases) await database.end();
      await cluster.close();
    },
  };
}

let shared: World;
let world: World;
let node: TestNode;
let user: Person;
let bot: Person;
/** The names of the scripts that have run during the test. */
let scripts: string[] = [];
const ends: Array<() => unknown> = [];
const runEnds = async () => {
  for (const end of ends.splice(0).reverse()) await end();
};

const lost = { ok: false, error_code: 503 };

/**
 * Starts a flusher that receives flush requests. `hears` returns false to drop a request. Returns the flusher's
 * connection to Redis, and a function that stops the flusher.
 */
async function startFlusher(
  cluster: TestCluster,
  options: {
    readonly intervalMs?: number;
    readonly hears?: () => boolean;
    readonly onStep?: () => Promise<void> | undefined;
  } = {},
) {
  const { connection, runner, shards, keys } = await cluster.node();
  const { hears = () => true, intervalMs = 10_000, onStep } = options;
  const hints = new RedisHints(cluster.redis.url, 'flush', () => undefined);
  const listen: typeof hints.listen = (channel, listener) =>
    hints.listen(channel, (hint) => hears() && listener(hint));
  const flusher = createFlusher({
    ...{ connection, runner, shards, keys, hotTtlMs, intervalMs, hints: { listen } },
    ...(onStep && { onStep }),
  });
  flusher.start();
  await eventually('leases on all partitions', () => flusher.stats().partitions === 4);
  const stop = async () => {
    await flusher.stop({ msMax: 2_000 });
    hints.close();
  };
  return { connection, stop };
}

/** Locks a table to which flushers write in each batch, so that the flushers cannot commit. */
async function holdCommits(): Promise<() => Promise<void>> {
  const held = [...world.databases];
  for (const database of held) {
    await database.query('begin');
    await database.query('lock table partitions in share mode');
  }
  const release = async () => {
    for (const database of held.splice(0)) await database.query('rollback');
  };
  ends.push(release);
  return release;
}

function recordScripts(): void {
  scripts = [];
  node.hooks.call = async (name, next) => {
    const result = await next();
    scripts.push(name);
    return result;
  };
}
const count = (name: string) => scripts.filter((each) => each === name).length;

/**
 * Waits until a durable call has found several times that its change is not committed. Expects that the call has no
 * answer yet.
 */
async function expectUnanswered(reply: Promise<unknown>): Promise<void> {
  const from = count('journal/progress');
  await expect.poll(() => count('journal/progress')).toBeGreaterThan(from + 2);
  expect(await within(0, reply)).toBe('late');
}

async function enter(entered: World): Promise<void> {
  world = entered;
  node = world.node;
  ({ user, bot } = await makeDirect(node));
  recordScripts();
}

const asked = { prefer: 'durable' };
const send = (text: string, key = '', how: object = asked): Promise<Reply> =>
  call(node, bot, 'sendMessage', { chat_id: user.id, text }, key, how);
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
const parsed = ({ body }: Reply): any => JSON.parse(body);
// biome-ignore lint/suspicious/noExplicitAny: results of every shape
async function resultOf(reply: Promise<Reply>): Promise<any> {
  const answer = parsed(await reply);
  expect(answer, JSON.stringify(answer)).toMatchObject({ ok: true });
  return answer.result;
}
/** Moves the clock past the maximum wait of a durable call, and returns the call's answer. */
async function afterLimit(reply: Promise<Reply>): Promise<Reply> {
  await expectUnanswered(reply);
  await pass(world.time, limits.durable_wait_ms_max, [node]);
  return reply;
}
const rowsOf = (id: number) => node.written.rows`
  select 1 from messages where chat_id = ${bot.id} and user_id = ${user.id} and message_id = ${id}`;

beforeAll(async () => {
  shared = await openWorld();
  const { stop } = await startFlusher(shared.cluster);
  const { close } = shared;
  shared = {
    ...shared,
    async close() {
      await stop();
      await close();
    },
  };
});
afterAll(() => shared.close());
beforeEach(() => enter(shared));
afterEach(async () => {
  await runEnds();
  Object.assign(node.hooks, { hint: () => true });
});

describe('durable calls', () => {
  it('a durable call is answered only after its message is committed', async () => {
    const release = await holdCommits();
    const reply = send('kept');
    await expectUnanswered(reply);
    await release();
    const { message_id } = await resultOf(reply);
    expect(await rowsOf(message_id)).toHaveLength(1);
  });

  it('a durable call does not delay other calls of the same chat', async () => {
    const release = await holdCommits();
    const durable = send('kept', '', { prefer: 'respond-async, durable' });
    const usual = await resultOf(send('usual', '', {}));
    await expectUnanswered(durable);
    await release();
    expect((await resultOf(durable)).message_id).not.toBe(usual.message_id);
  });

  it('a durable edit never becomes a pending edit, because a pending edit is only in Redis', async () => {
    const { message_id } = await resultOf(send('a'));
    const edit = (text: string, how: object) =>
      call(node, bot, 'editMessageText', { chat_id: user.id, message_id, text, coalesce: true }, '', how);
    await resultOf(edit('b', asked));
    await moveLastEdit(node, directChat(bot.id, user.id), message_id, Date.now() + 3_600_000);
    expect(parsed(await edit('c', asked))).toMatchObject({ ok: false, error_code: 429 });
    expect(await resultOf(edit('d', {}))).toMatchObject({ text: 'd', edit_pending: true });
  });

  it.each([
    ['a message', ''],
    ['an inline message', 'inline'],
  ])('a durable repeat of a pending edit of %s waits until the edit is stored', async (_, kind) => {
    const chat = directChat(bot.id, user.id);
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
    await moveLastEdit(node, chat, id, Date.now() + 3_600_000);
    await dieUnnoted(node, () => edit('c', 'k1', {}));
    recordScripts();
    expect(parsed(await edit('c', 'k1', asked))).toMatchObject({ ok: false, error_code: 429 });
    await moveLastEdit(node, chat, id, 0);
    const release = await holdCommits();
    await node.store.pendingEdits.apply(node.keys.partitions.of(bot.id));
    const [message] = await node.store.messages.readMany(chat, bot.sender, [id]);
    expect(message?.record.content.text).toBe('c');
    const repeated = edit('c', 'k1', asked);
    await expectUnanswered(repeated);
    await release();
    await resultOf(repeated);
  });

  it('on a front with the setting DURABLE, changes wait for their commit and reads do not', async () => {
    const release = await holdCommits();
    const reply = send('kept', '', { durable: true });
    const read = call(node, user, `GET /api/chats/${bot.id}`, {}, '', { durable: true });
    await expectUnanswered(reply);
    expect((await read).status).toBe(200);
    await release();
    await resultOf(reply);
  });

  it('a durable call gets an error if Postgres does not commit in time, and can be repeated with its idempotency key', async () => {
    const release = await holdCommits();
    const { unconfirmed } = node.store.durability.stats;
    expect(parsed(await afterLimit(send('once', 'k1')))).toEqual({
      ...lost,
      description: 'Service Unavailable: the change may be lost, retry after 1',
      parameters: { retry_after: 1 },
    });
    expect(node.store.durability.stats).toMatchObject({ waiting: 0, bytes: 0, unconfirmed: unconfirmed + 1 });
    await release();
    const { message_id } = await resultOf(send('once', 'k1'));
    expect((await resultOf(send('next'))).message_id).toBe(message_id + 1);
  });

  it('if a durable call is repeated with its idempotency key, the repeated call waits for the commit of the first call', async () => {
    const { message_id } = await resultOf(send('source'));
    const copy = () =>
      call(
        ...([node, bot, 'copyMessage'] as const),
        ...([{ chat_id: user.id, from_chat_id: user.id, message_id }, 'k1', asked] as const),
      );
    const release = await holdCommits();
    expect(parsed(await afterLimit(copy()))).toMatchObject(lost);
    const repeated = copy();
    await expectUnanswered(repeated);
    await release();
    expect(await rowsOf((await resultOf(repeated)).message_id)).toHaveLength(1);
  });

  it('a durable call that fails is answered immediately', async () => {
    await holdCommits();
    const refused = call(node, bot, 'sendMessage', { chat_id: user.id, text: '' }, '', asked);
    expect((await refused).status).toBe(400);
    const gone = call(node, bot, 'deleteMessage', { chat_id: user.id, message_id: 999 }, 'k', asked);
    expect((await gone).status).toBe(400);
  });

  it("a durable call is answered even if the flusher's message about the commit is lost", async () => {
    let dropped = 0;
    node.hooks.hint = (channel) => {
      if (channel !== node.keys.flushed()) return true;
      dropped++;
      return false;
    };
    await resultOf(send('kept'));
    await resultOf(send('kept'));
    expect(dropped).toBeGreaterThan(0);
  });
});

describe('limits on durable calls', () => {
  it('an account at its limit of durable calls gets 429, and other accounts can still make durable calls', async () => {
    const { message_id } = await resultOf(send('usual', '', {}));
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    ends.push(() => end());
    const caller = { account: user.id, onGone: () => undefined };
    for (let i = 0; i < limits.durable_calls_per_account_max; i++)
      void node.store.durability.run(
        caller,
        () => ended,
        () => 0,
      );
    expect(parsed(await send('too many'))).toMatchObject({ ok: false, error_code: 429 });
    const own = call(node, user, `POST /api/chats/${bot.id}/messages`, { text: 'a' }, '', asked);
    await expect(own).rejects.toMatchObject({ code: 429 });
    const other = await makeDirect(node);
    await resultOf(call(node, other.bot, 'sendMessage', { chat_id: other.user.id, text: 'kept' }, '', asked));
    expect((await resultOf(send('usual', '', {}))).message_id).toBe(message_id + 1);
  });

  it('if the caller disconnects, the durable call no longer counts against the limit, and a repeated call waits for the commit', async () => {
    const release = await holdCommits();
    let disconnect = () => {};
    const onAbort = (listener: () => void) => {
      disconnect = listener;
    };
    const { unconfirmed } = node.store.durability.stats;
    const reply = send('kept', 'k1', { ...asked, onAbort });
    await expectUnanswered(reply);
    expect(node.store.durability.stats.waiting).toBe(1);
    disconnect();
    expect(parsed(await reply)).toMatchObject(lost);
    expect(node.store.durability.stats).toMatchObject({ waiting: 0, bytes: 0, unconfirmed });
    const repeated = send('kept', 'k1');
    await expectUnanswered(repeated);
    await release();
    const { message_id } = await resultOf(repeated);
    expect(await rowsOf(message_id)).toHaveLength(1);
    expect((await resultOf(send('next'))).message_id).toBe(message_id + 1);
  });

  it('the size limit for answers that wait for a commit counts bytes, not characters', async () => {
    const release = await holdCommits();
    const reply = send('\u00e4'.repeat(1_000));
    await expect.poll(() => node.store.durability.stats.bytes).toBeGreaterThan(2_000);
    await release();
    await resultOf(reply);
    expect(node.store.durability.stats.bytes).toBe(0);
  });
});

describe('calls that are not durable', () => {
  it('a call that is not durable runs only the script that makes the change', async () => {
    await resultOf(send('warms up', '', {}));
    recordScripts();
    await resultOf(send('usual', '', {}));
    expect(scripts.filter((name) => name.startsWith('journal/') || name.startsWith('messages/'))).toEqual([
      'messages/send_to_user',
    ]);
  });
});

describe('every call that changes stored data can be durable', () => {
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
      await expectUnanswered(reply);
      await release();
      expect([method, parsed(await reply).ok]).toEqual([method, true]);
    }
  });
});

describe('durable calls survive failures of Redis and of flushers', () => {
  beforeEach(async () => {
    const own = await openWorld();
    ends.push(() => own.close());
    await enter(own);
  });

  it('a durable call gets an error if Redis loses its data before the commit', async () => {
    const { stop } = await startFlusher(world.cluster);
    ends.push(stop);
    await holdCommits();
    const reply = send('lost');
    await expectUnanswered(reply);
    const { redis } = world.cluster;
    await redis.stop('SIGKILL');
    rmSync(join(redis.dir, 'appendonlydir'), { recursive: true, force: true });
    await redis.start();
    expect(parsed(await reply)).toMatchObject(lost);
  });

  it('a durable call is answered even if the flusher crashes and its successor receives no flush requests', async () => {
    const stopped = gate();
    const first = await startFlusher(world.cluster, { onStep: () => stopped.wait() });
    ends.push(first.stop);
    await resultOf(send('not flushed', '', {}));
    await stopped.reached;
    // The flusher that is about to crash loses its connection to Redis, so it cannot renew its leases or announce
    // commits.
    await first.connection.close();
    const { client } = node.connection;
    for (const partition of [0, 1, 2, 3]) await client.del(node.keys.flushLease(partition));
    await client.del(node.keys.flushers());
    let dropped = 0;
    const hears = () => {
      dropped++;
      return false;
    };
    const { stop } = await startFlusher(world.cluster, { intervalMs: 250, hears });
    ends.push(stop);
    for (const text of ['a', 'b'])
      expect(await rowsOf((await resultOf(send(text))).message_id)).toHaveLength(1);
    expect(dropped).toBeGreaterThan(0);
    stopped.open();
  });
});
