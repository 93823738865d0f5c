import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import type { StreamListener } from '../../src/store/chats/streams.js';
import { eventually } from '../clients/event_source.js';
import { gate } from '../journal/support.js';
import { RunningTime } from '../support/running_time.js';
import { makeUser, pass, startCluster, type TestCluster, type TestNode, text } from '../support/store.js';

const time = new RunningTime();
let cluster: TestCluster;
let a: TestNode;
let b: TestNode;

beforeAll(async () => {
  cluster = await startCluster(undefined, undefined, time);
  [a, b] = await Promise.all([cluster.node(), cluster.node()]);
});
afterAll(() => cluster?.close());

/**
 * Opens a stream, from a cursor if given. Returns the texts that the stream shows, and functions that end and resume
 * the stream.
 */
async function open(node: TestNode, user: number, from = '') {
  const seen: string[] = [];
  let cursor = '';
  const nothing = () => undefined;
  const soon = async () => undefined;
  const listener: StreamListener = {
    ...{ membership: nothing, action: nothing, read: nothing, settings: nothing, leave: nothing },
    ...{ draft: soon, draftStopped: nothing, scheduled: nothing, profile: nothing, personDraft: nothing },
    start(at) {
      cursor = at;
    },
    change(change) {
      cursor = change.cursor;
      seen.push(change.kind === 'gap' ? 'gap' : (change.message?.record.content.text ?? '?'));
    },
  };
  const stop = await node.store.streams.open(user, from, listener);
  return { seen, stop, cursor: () => cursor };
}

const listen = async (node: TestNode, user: number) => (await open(node, user)).seen;

test('if a stream ends while it subscribes to a new chat, it leaves no subscription', async () => {
  const owner = await makeUser(a);
  const stream = await open(a, owner.id);
  const held = gate();
  let subscribed = 0;
  a.hooks.listen = async (channel, run) => {
    const stop = await run();
    if (!channel.includes(':on_chat:')) return stop;
    subscribed++;
    await held.wait();
    return () => {
      subscribed--;
      stop();
    };
  };
  try {
    await a.store.chats.create('group', 'New', owner.id);
    await held.reached;
    stream.stop();
    held.open();
    await expect.poll(() => subscribed).toBe(0);
  } finally {
    a.hooks.listen = (_, run) => run();
  }
});

test('a chat has a log of changes only while somebody reads the chat', async () => {
  const owner = await makeUser(a);
  const group = await a.store.chats.create('channel', 'Quiet', owner.id);
  const send = (words: string) => b.store.messages.send(group, owner.sender, text(words));
  const log = cluster.keys.changes(group);
  const redis = a.connection.client;
  await send('before anyone looks');
  // The log exists although nobody reads the chat, because the creator of a new chat may open a stream next.
  expect(await redis.xlen(log)).toBe(1);
  await redis.del(log);
  await send('nobody looks');
  expect(await redis.exists(log)).toBe(0);

  const first = await open(a, owner.id);
  await send('one');
  await eventually(() => expect(first.seen).toEqual(['one']));
  expect(await redis.pttl(log)).toBeGreaterThan((limits.changes_log_ttl_ms * 3) / 4);
  first.stop();
  await send('two');
  const second = await open(a, owner.id, first.cursor());
  await eventually(() => expect(second.seen).toEqual(['two']));
  second.stop();

  // Simulates that the log expired after the last read. This message is stored only in the history.
  await redis.del(log);
  await send('three');
  const third = await open(a, owner.id);
  await send('four');
  await eventually(() => expect(third.seen).toEqual(['four']));
  third.stop();
  const back = await open(a, owner.id, second.cursor());
  await eventually(() => expect(back.seen).toEqual(['gap']));
  await send('five');
  await eventually(() => expect(back.seen).toEqual(['gap', 'five']));
  back.stop();
});

test('a removed member gets no later messages, even if the event stream missed the hint about the removal', async () => {
  const [owner, member] = await Promise.all([makeUser(a), makeUser(a)]);
  const group = await a.store.chats.create('channel', 'Team', owner.id);
  const put = (status: 'member' | 'kicked') =>
    b.store.chats.putMember(group, { id: member.id, is_bot: false }, status, {}, owner.id);
  const send = (words: string) => b.store.messages.send(group, owner.sender, text(words));
  await put('member');
  const [owned, removed] = await Promise.all([listen(a, owner.id), listen(a, member.id)]);
  await send('for all');
  await eventually(() => expect([owned, removed]).toEqual([['for all'], ['for all']]));
  a.hooks.hint = (channel) => channel !== cluster.keys.userChannel(member.id);
  await put('kicked');
  await send('secret');
  await eventually(() => expect(owned).toEqual(['for all', 'secret']));
  // The wait is long enough for several reads of the stream, but shorter than the interval at which the stream reads
  // the list of chats again.
  await pass(time, 2_200, [a]);
  expect(removed).toEqual(['for all']);
});
