/** Tests polls while Postgres is unavailable, and polls of deleted bots. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { withResults } from '../../src/actions/polls.js';
import { pollIn } from '../../src/content/poll.js';
import { ApiError } from '../../src/errors.js';
import { partitionOfPost } from '../../src/store/core/keys.js';
import { evict, makeDirect, startCluster, type TestCluster, type TestNode, text } from '../support/store.js';

let cluster: TestCluster;
let node: TestNode;

beforeAll(async () => {
  cluster = await startCluster();
  node = await cluster.node();
});
afterAll(() => cluster.close());

test('people can read messages with polls while Postgres is unavailable', async () => {
  const { user, bot, chat } = await makeDirect(node);
  const { store, keys, hooks } = node;
  const draft = { type: 'poll', bot: bot.id, question: 'Where?', options: ['Here', 'There'] } as const;
  const poll = await store.votes.create(chat, draft);
  const sent = await store.messages.send(chat, bot.sender, { ...text(''), content: { object: poll } });
  await store.votes.cast(poll, { id: user.id, profile: null }, [1]);
  await cluster.flush();
  const id = Number(poll.id);
  expect(partitionOfPost(id)).toBe(keys.partitions.of(chat.id));
  const seen = async (who: { id: number; isBot: boolean }) => {
    await evict(node, keys.poll(id), `${keys.voted(id)}0`);
    const [message] = await withResults(store, who, [sent]);
    return message && pollIn(message.record.content);
  };
  const [person, robot] = [
    { id: user.id, isBot: false },
    { id: bot.id, isBot: true },
  ];
  const { query } = hooks;
  hooks.query = () => Promise.reject(new ApiError('unavailable', { retry_after: 1 }));
  const during = await seen(person);
  // Petrel forwards a poll only if its results are available, because a forward stores the results.
  await expect(seen(robot)).rejects.toMatchObject({ kind: 'unavailable' });
  hooks.query = query;
  expect(during).toEqual(poll);
  expect(await seen(person)).toEqual({
    ...poll,
    state: { voters: 1, stopped: false, counts: [0, 1], own: [1] },
  });
});

test('if the polls on a page of messages are only in Postgres, one query reads the polls and another query reads the votes', async () => {
  const { user, bot, chat } = await makeDirect(node);
  const { store, keys, hooks } = node;
  const draft = { type: 'poll', bot: bot.id, question: 'Where?', options: ['Here', 'There'] } as const;
  const sent = [];
  for (let i = 0; i < 30; i++) {
    const poll = await store.votes.create(chat, draft);
    sent.push(await store.messages.send(chat, bot.sender, { ...text(''), content: { object: poll } }));
    if (i % 3 > 0) await store.votes.cast(poll, { id: user.id, profile: null }, [i % 2]);
  }
  await cluster.flush();
  const polls = sent.map(({ record }) => Number(pollIn(record.content)?.id));
  await evict(node, ...polls.flatMap((id) => [keys.poll(id), `${keys.voted(id)}0`]));
  const { query } = hooks;
  let queries = 0;
  hooks.query = (_, run) => {
    queries++;
    return run();
  };
  const seen = await withResults(store, { id: user.id, isBot: false }, sent);
  hooks.query = query;
  expect(seen.map(({ record }) => pollIn(record.content)?.state?.own)).toEqual(
    polls.map((_, i) => (i % 3 > 0 ? [i % 2] : [])),
  );
  expect(queries).toBe(2);
});

test('when a poll of a deleted bot closes later, no queue is created for the bot', async () => {
  const { user, bot } = await makeDirect(node);
  const { store, keys, connection } = node;
  const group = await store.chats.create('group', 'Polls', user.id);
  const close_date = Math.floor(Date.now() / 1_000) + 1;
  const draft = { type: 'poll', bot: bot.id, question: 'Q', options: ['a', 'b'], close_date } as const;
  const poll = await store.votes.create(group, draft);
  await store.bots.remove(user.id, bot.id);
  const partition = keys.partitions.of(group.id);
  const { client } = connection;
  // Simulates a later day, when the state of the closed queue has expired.
  await client.del(keys.queueState(bot.id));
  await expect
    .poll(async () => {
      await store.votes.tell(partition);
      return client.zscore(keys.pollsDue(partition), poll.id);
    })
    .toBe(null);
  await store.forwarder.forwardAll(partition);
  expect(await client.xlen(keys.outbox(partition))).toBe(0);
  expect(await client.exists(keys.queueState(bot.id), keys.queue(bot.id))).toBe(0);
});
