/**
 * Promotes a replica that lacks the last writes, while a worker, a forwarder and a poller keep running. They must skip
 * no update that the replica has.
 */
import { Redis } from 'ioredis';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sharedChat } from '../../src/store/core/keys.js';
import {
  type Answer,
  type Books,
  keepBooks,
  keepQueue,
  makeChats,
  settingsFor,
  startWorld,
  type World,
} from '../delivery/world.js';
import { eventually, gate, type RedisServer, startRedis } from '../journal/support.js';
import { makeBot, poll, shown, text } from '../support/store.js';
import { atMost, patienceMs, report } from './report.js';

let world: World;
let replica: RedisServer;
let control: Redis;
let books: Books | undefined;

beforeEach(async () => {
  world = await startWorld();
  replica = await startRedis('--replicaof', '127.0.0.1', portOf(world.cluster.redis));
  control = new Redis(replica.url, { retryStrategy: () => 30 });
  control.on('error', () => undefined);
  await eventually('replicated', async () => (await control.info()).includes('master_link_status:up'));
});
afterEach(async () => {
  await books?.close();
  books = undefined;
  await world.close();
  control.disconnect();
  await replica.remove();
});

const portOf = ({ url }: RedisServer) => new URL(url).port;
const master = () => world.front.connection.client;

/** From now on, writes reach only the master, so the failover will lose these writes. */
async function disconnectReplica(): Promise<void> {
  expect(await master().call('WAIT', '1', '10000')).toBe(1);
  await control.replicaof('NO', 'ONE');
}

async function failOver(): Promise<void> {
  const former = world.front.connection.runId();
  await world.cluster.redis.stop('SIGKILL');
  await control.config('SET', 'port', portOf(world.cluster.redis));
  await eventually('connected', () => ![null, former].includes(world.front.connection.runId()));
}

/** Returns the texts of the updates of a chat, in the order of their first attempts. */
const firsts = (chat: number) => [
  ...new Set((books as Books).arrivals.filter((each) => each.chat === chat).map((each) => each.text)),
];
const taken = (chat: number) =>
  new Set((books as Books).taken.filter((each) => each.chat === chat).map((each) => each.text));

test(
  'R21: a webhook worker skips no update that a failover of Redis left in the queue',
  async () => {
    const { front } = world;
    const { bot, users, say } = await makeChats(front, 3);
    const [failing, fine] = [users[1]?.id ?? 0, users[2]?.id ?? 0];
    const opened = gate();
    let status = 200;
    const answer: Answer = async ({ chat, text: said }) => {
      if (chat !== failing || said === 'before') return 200;
      await opened.wait();
      return status;
    };
    books = await keepBooks(answer);
    const { worker } = await world.worker();
    await front.store.webhooks.set(bot.id, settingsFor(books), keepQueue);
    await say(1, 'before');
    await eventually('delivered', () => taken(failing).has('before'));

    // The replica gets the lease and two updates: `first`, whose request is open at the receiver, and `second`, which
    // waits for the end of this request.
    await say(1, 'first');
    await say(1, 'second');
    await eventually('open', () => firsts(failing).includes('first'));
    await disconnectReplica();
    // From here on, the replica gets no writes. The master moves both updates to the parked set, and moves the cursor
    // beyond them.
    status = 500;
    opened.open();
    await say(2, 'lost');
    const { keys } = world.cluster;
    await eventually('parked', async () => (await master().zcard(keys.parked(bot.id))) === 2);
    await eventually('passed', async () => {
      const [last] = await master().xrevrange(keys.queue(bot.id), '+', '-', 'COUNT', 1);
      const cursor = await master().hget(keys.queueState(bot.id), 'cur');
      return Number(cursor) >= Number(last?.[0].split('-')[0]) && taken(fine).has('lost');
    });
    expect(worker.stats().drains).toBe(1);
    await failOver();
    status = 200;

    await say(1, 'third');
    await say(2, 'after');
    const wanted = ['before', 'first', 'second', 'third'];
    await eventually('all delivered', () => wanted.every((each) => taken(failing).has(each)), 30_000);
    const pending = async () => (await front.store.queues.info(bot.id)).pending;
    await eventually('nothing waits', async () => (await pending()) === 0, 30_000);
    expect(firsts(failing).filter((each) => wanted.includes(each ?? ''))).toEqual(wanted);
    expect(taken(fine).has('after')).toBe(true);
    const skipped = wanted.filter((each) => !taken(failing).has(each)).length;
    report('R21', 'a failover that lost its tail, with a webhook worker alive', {}, [
      atMost('updates skipped that survived', skipped, 0),
      atMost('pending updates at the end', await pending(), 0),
    ]);
  },
  patienceMs,
);

test(
  'R21: after a failover of Redis, a forwarder adds the lost updates to the queue again',
  async () => {
    const { front } = world;
    const { users } = await makeChats(front, 1);
    const [user] = users as [(typeof users)[number]];
    const bot = await makeBot(front, user);
    const group = await front.store.chats.create('group', 'Talk', user.id);
    await front.store.chats.putMember(group, { id: bot.id, is_bot: true }, 'member', {});
    const send = (value: string) => front.store.messages.send(sharedChat(group.id), user.sender, text(value));
    await send('before');
    let confirmed = 0;
    const received: Array<string | undefined> = [];
    /** Polls for the bot and confirms the updates of the previous poll. */
    const look = async () => {
      const updates = (await poll(front, bot, confirmed)).filter(({ kind }) => kind === 'message');
      received.push(...shown(updates));
      confirmed = (updates.at(-1)?.updateId ?? confirmed - 1) + 1;
    };
    await eventually('received', async () => {
      await look();
      return received.includes('before');
    });

    const trimming = gate();
    front.hooks.call = async (name, run) => {
      // The replica has the message in its outbox, but not in the bot's queue.
      if (name === 'updates/accept_forwarded') await disconnectReplica();
      if (name === 'updates/trim_outbox') await trimming.wait();
      return run();
    };
    await send('survives');
    await trimming.reached;
    front.hooks.call = (_, run) => run();
    await failOver();
    trimming.open();
    await send('after');
    await eventually('received', async () => {
      await look();
      return received.includes('after');
    });
    expect(received).toEqual(['before', 'survives', 'after']);
  },
  patienceMs,
);
