import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { gate } from '../journal/support.js';
import {
  chatKeys,
  evict,
  makeDirect,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

let cluster: TestCluster;
let a: TestNode;
let b: TestNode;

beforeAll(async () => {
  cluster = await startCluster();
});
beforeEach(async () => {
  [a, b] = await Promise.all([cluster.node(), cluster.node()]);
});
afterAll(() => cluster.close());

/** Holds back the answer of Postgres to the node’s next statement that contains `part`. */
function holdAnswer(node: TestNode, part: string) {
  const held = gate();
  let done = false;
  node.hooks.query = async (sql, run) => {
    const rows = await run();
    if (done || !sql.includes(part)) return rows;
    done = true;
    await held.wait();
    return rows;
  };
  return held;
}

function answersOf(node: TestNode, script: string): unknown[] {
  const answers: unknown[] = [];
  node.hooks.call = async (name, run) => {
    const answer = await run();
    if (name === script) answers.push(answer);
    return answer;
  };
  return answers;
}

async function coldMessage() {
  const made = await makeDirect(b);
  const { id } = await b.store.messages.send(made.chat, made.bot.sender, text('first', 'go'));
  await cluster.flush();
  await evict(b, ...chatKeys(cluster.keys, made.chat, id));
  return { ...made, id, key: cluster.keys.message(made.chat, id) };
}

const edited = { what: 'text', content: { text: 'second' }, markup: null } as const;

test('if a message was edited and evicted during a read-back, its old version is not restored', async () => {
  const { chat, bot, user, id, key } = await coldMessage();
  const fills = answersOf(a, 'messages/fill');
  const held = holdAnswer(a, 'from messages');
  const pressed = a.store.callbacks.press(chat, user.sender.profile, id, 'go').catch((error) => error);
  await held.reached;
  await b.store.messages.edit(chat, bot.sender, id, edited);
  await cluster.flush();
  await evict(b, key);
  held.open();
  // The press used the old record, which still had the button. The edit has removed the button, so the press is
  // refused.
  expect(await pressed).toMatchObject({ kind: 'button_not_found' });
  expect(fills).toEqual([
    { status: 'ok', filled: false },
    { status: 'ok', filled: true },
  ]);
  const [newest] = (await a.store.history.list(chat, 0, 1)) ?? [];
  expect(newest?.record.content).toEqual({ text: 'second' });
});

test('if a message was deleted and evicted during a read-back, it is not restored', async () => {
  const { chat, bot, user, id, key } = await coldMessage();
  const fills = answersOf(a, 'messages/fill');
  const held = holdAnswer(a, 'from messages');
  const pressed = a.store.callbacks.press(chat, user.sender.profile, id, 'go').catch((error) => error);
  await held.reached;
  await b.store.messages.remove(chat, bot.sender, id);
  await cluster.flush();
  await evict(b, key);
  held.open();
  expect(await pressed).toMatchObject({ kind: 'message_not_found' });
  expect(fills).toEqual([{ status: 'ok', filled: false }]);
  expect(await b.connection.client.exists(key)).toBe(0);
  expect(await a.store.history.list(chat, 0, 10)).toEqual([]);
});

test('if a message was sent and evicted during a read-back of its chat, no id is given out twice', async () => {
  const { chat, bot, id } = await coldMessage();
  const fills = answersOf(a, 'chats/fill');
  const held = holdAnswer(a, 'from chat_sequences');
  const sent = a.store.messages.send(chat, bot.sender, text('from a'));
  await held.reached;
  const other = await b.store.messages.send(chat, bot.sender, text('from b'));
  expect(other.id).toBe(id + 1);
  await cluster.flush();
  await evict(b, ...chatKeys(cluster.keys, chat, other.id));
  held.open();
  expect((await sent).id).toBe(id + 2);
  expect(fills).toEqual([
    { status: 'ok', filled: false },
    { status: 'ok', filled: true },
  ]);
});

test('a used read-back ticket stays invalid when the call that got the ticket is repeated', async () => {
  const { chat, bot, id } = await coldMessage();
  const c = await cluster.node();
  const [first, second] = [gate(), gate()];
  const gates = [first, second];
  a.hooks.query = async (sql, run) => {
    const rows = await run();
    if (sql.includes('from chat_sequences')) await gates.shift()?.wait();
    return rows;
  };
  const held = holdAnswer(b, 'from chat_sequences');
  const fromA = a.store.messages.send(chat, bot.sender, text('from a'));
  await first.reached;
  // Node b gets the same ticket as node a, and loads the chat before node c sends a message.
  const fromB = b.store.messages.send(chat, bot.sender, text('from b'));
  await held.reached;
  const fromC = await c.store.messages.send(chat, bot.sender, text('from c'));
  await cluster.flush();
  await evict(b, ...chatKeys(cluster.keys, chat, fromC.id));
  first.open();
  await second.reached;
  held.open();
  const ids = [fromC.id, (await fromB).id];
  second.open();
  ids.push((await fromA).id);
  expect(ids).toEqual([id + 1, id + 2, id + 3]);
});

test('if a control record was changed and evicted during a read-back, its old version is not restored', async () => {
  const { bot, user } = await makeDirect(b);
  const key = cluster.keys.bot(bot.id);
  await evict(b, key);
  const writes = answersOf(a, 'control/write');
  const held = holdAnswer(a, 'from bots');
  const looked = a.store.auth.bot(bot.token);
  await held.reached;
  const { token } = await b.store.bots.regenerateToken(user.id, bot.id);
  await evict(b, key);
  held.open();
  await looked;
  expect(writes).toEqual([{ status: 'ok', written: false }]);
  expect(await b.connection.client.exists(key)).toBe(0);
  expect(await a.store.auth.bot(bot.token)).toBeNull();
  expect(await a.store.auth.bot(token)).toMatchObject({ id: bot.id });
});

test('a late refresh does not restore an old value, even if a later refresh and an eviction happened before it', async () => {
  const { bot } = await makeDirect(b);
  const key = cluster.keys.bot(bot.id);
  const held = gate();
  a.hooks.call = async (name, run) => {
    if (name === 'control/write') await held.wait();
    return run();
  };
  const slow = a.store.bots.setTexts(bot.id, { name: { '': 'earlier' } });
  await held.reached;
  await b.store.bots.setTexts(bot.id, { name: { '': 'later' } });
  await evict(b, key);
  held.open();
  await slow;
  for (const node of [a, b]) expect(await node.store.auth.botById(bot.id)).toMatchObject({ name: 'later' });
});

test('when several nodes read the same missing record, one of them stores it and all calls succeed', async () => {
  const { chat, bot, id } = await coldMessage();
  const tickets: unknown[] = [];
  const held = [a, b].map((node) => holdAnswer(node, 'from chat_sequences'));
  const fills: unknown[] = [];
  for (const node of [a, b]) {
    node.hooks.call = async (name, run) => {
      const answer = (await run()) as { status: string; ticket: string; filled: boolean };
      if (answer.status === 'chat_missing') tickets.push(answer.ticket);
      if (name === 'chats/fill') fills.push(answer.filled);
      return answer;
    };
  }
  const sends = [a, b].map((node) => node.store.messages.send(chat, bot.sender, text('x')));
  await Promise.all(held.map(({ reached }) => reached));
  expect(tickets).toHaveLength(2);
  expect(tickets[0]).toBe(tickets[1]);
  for (const each of held) each.open();
  const ids = (await Promise.all(sends)).map((message) => message.id);
  expect(ids.sort()).toEqual([id + 1, id + 2]);
  expect(fills.sort()).toEqual([false, true]);
});

test('when messages are deleted, one statement reads all messages that are not in Redis', async () => {
  const { chat, bot } = await makeDirect(b);
  const ids: number[] = [];
  for (const words of ['one', 'two', 'three'])
    ids.push((await b.store.messages.send(chat, bot.sender, text(words))).id);
  await b.store.messages.remove(chat, bot.sender, ids[1] as number);
  await cluster.flush();
  const { client } = b.connection;
  await client.unlink(...ids.map((id) => cluster.keys.message(chat, id)));
  let reads = 0;
  b.hooks.query = (sql, run) => {
    if (sql.includes('from messages')) reads++;
    return run();
  };
  await b.store.messages.removeMany(chat, bot.sender, ids);
  expect(reads).toBe(1);
  expect(await b.store.messages.readMany(chat, bot.sender, ids)).toEqual([null, null, null]);
});
