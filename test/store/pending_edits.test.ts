/** Tests pending edits when Redis is killed. An accepted edit is never lost. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { pack } from '../../src/store/core/codec.js';
import type { StoredMessage } from '../../src/store/core/stored_message.js';
import { eventually } from '../journal/support.js';
import {
  makeDirect,
  moveLastEdit,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

let cluster: TestCluster;
let first: TestNode;
let made: Awaited<ReturnType<typeof makeDirect>>;
let sent: StoredMessage;

beforeEach(async () => {
  cluster = await startCluster(2);
  first = await cluster.node();
  made = await makeDirect(first);
  sent = await first.store.messages.send(made.chat, made.bot.sender, text('start'));
});
afterEach(() => cluster.close());

const edit = (value: string, node = first) =>
  node.store.messages.editCoalesced(
    made.chat,
    made.bot.sender,
    sent.id,
    { what: 'text', content: { text: value }, markup: null },
    made.user.id,
  );
const stored = async (node: TestNode) =>
  (await node.store.messages.readMany(made.chat, made.bot.sender, [sent.id]))[0]?.record.content.text;
const place = () => `${made.chat.id}.${made.chat.user}:${sent.id}`;
const partition = () => first.keys.partitions.of(made.chat.id);

/** Makes an edit pending and immediately due. No timer applies it. */
async function makePending(): Promise<void> {
  await edit('one');
  // Moves the time of the first edit an hour ahead, so that the second edit becomes pending even on a busy machine.
  await moveLastEdit(first, made.chat, sent.id, Date.now() + 3_600_000);
  expect(await edit('two')).toMatchObject({ isPending: true, record: { content: { text: 'two' } } });
  first.store.pendingEdits.stop();
  await moveLastEdit(first, made.chat, sent.id, 0);
}

test('a pending edit survives a killed Redis, and another node applies it', async () => {
  const second = await cluster.node();
  await makePending();
  const before = second.connection.runId();
  await cluster.redis.stop('SIGKILL');
  await cluster.redis.start();
  await eventually('connected again', () => ![null, before].includes(second.connection.runId()));
  await expect
    .poll(async () => {
      await second.store.pendingEdits.apply(partition());
      return stored(second);
    })
    .toBe('two');
});

test('other members see the stored text until a pending edit is applied, and an older text never replaces a newer one', async () => {
  await makePending();
  expect(await stored(first)).toBe('one');
  const pending = first.keys.pendingEdits(partition());
  const due = () => first.connection.client.zscore(first.keys.editsDue(partition()), place());
  expect(Object.keys(await first.connection.client.hgetall(pending)).sort()).toEqual(
    [place(), `owner:${made.user.id}`, 'all'].sort(),
  );
  // One second after the last edit, a normal edit is possible.
  const normal = () =>
    first.store.messages.edit(made.chat, made.bot.sender, sent.id, {
      ...{ what: 'text', content: { text: 'three' }, markup: null },
    });
  await expect.poll(() => normal().then(() => 'edited')).toBe('edited');
  expect(await due()).not.toBeNull();
  await first.store.pendingEdits.apply(partition());
  expect([await stored(first), await due()]).toEqual(['three', null]);
  expect(await first.connection.client.exists(pending)).toBe(0);
});

/** Waits until an edit of this partition is due, and applies all due edits. */
async function applyOnceDue(): Promise<void> {
  const due = () => first.connection.client.zscore(first.keys.editsDue(partition()), place());
  await expect.poll(async () => Number(await due()) <= Date.now()).toBe(true);
  await first.store.pendingEdits.apply(partition());
}

test('if a newer edit replaces a pending edit that is being applied, only the newer edit is stored', async () => {
  await makePending();
  let replaced = false;
  const outcomes: unknown[] = [];
  first.hooks.call = async (name, next) => {
    if (name === 'messages/edit_direct' && !replaced) {
      replaced = true;
      const { client } = first.connection;
      // Simulates an edit by another bot before the script runs.
      await client.eval(
        `local edit = cmsgpack.unpack(redis.call('HGET', KEYS[1], ARGV[1]))
         edit[1], edit[4] = 'other', ARGV[2]
         redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack(edit))`,
        1,
        first.keys.pendingEdits(partition()),
        place(),
        pack({ text: 'six' }),
      );
    }
    const result = await next();
    if (name === 'messages/edit_direct') outcomes.push((result as { readonly status: string }).status);
    return result;
  };
  await applyOnceDue();
  expect(outcomes).toEqual(['not_pending']);
  expect(await stored(first)).toBe('one');
  await applyOnceDue();
  expect(await stored(first)).toBe('six');
});

test.each([
  ['suspended', () => first.store.oversight.suspendBot(made.bot.id, true)],
  [
    'blocked',
    () => first.store.leaks.report([{ token: made.bot.token, place: 'https://a.example/' }], 'report'),
  ],
  ['deleted', () => first.store.bots.remove(made.user.id, made.bot.id)],
])('a pending edit is dropped if its bot was %s', async (_, stop) => {
  await makePending();
  await stop();
  await applyOnceDue();
  expect(await stored(first)).toBe('one');
  expect(await first.connection.client.exists(first.keys.pendingEdits(partition()))).toBe(0);
});
