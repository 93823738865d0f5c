/**
 * Calls that run again under their idempotency key, because the node of the first run died before it noted the answer, and
 * after what they are about has changed: they change nothing and answer as the first run would have.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { call, dieUnnoted } from '../support/keyed.js';
import {
  makeDirect,
  type Person,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

let cluster: TestCluster;
let one: TestNode;
let two: TestNode;
let user: Person;
let bot: Person;
let chat: { readonly id: number; readonly user: number };

beforeAll(async () => {
  cluster = await startCluster();
  [one, two] = [await cluster.node(), await cluster.node()];
  await Promise.all([one.store.auth.start(), two.store.auth.start()]);
  ({ user, bot, chat } = await makeDirect(one));
});
afterAll(() => cluster?.close());

let keys = 0;

/** Runs a call whose node dies, then `meanwhile`, then the call again on another node; returns that answer's result. */
async function again(
  method: string,
  params: object,
  meanwhile: () => Promise<unknown>,
  caller: Person = bot,
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
): Promise<any> {
  const key = `again ${++keys}`;
  await dieUnnoted(one, () => call(one, caller, method, params, key));
  await meanwhile();
  const reply = await call(two, caller, method, params, key);
  expect(reply).toMatchObject({ status: 200 });
  const { ok, result, ...flat } = JSON.parse(reply.body);
  expect(ok).toBe(true);
  return result ?? flat;
}

const send = async (value = 'x') => (await one.store.messages.send(chat, bot.sender, text(value))).id;
const pinned = async () => (await one.store.chats.find(chat))?.pinned;

test('behaviour §5: a pin of what was pinned does not pin it again over what was pinned since', async () => {
  const [a, b] = [await send(), await send()];
  await one.store.pins.pin(chat, bot.sender, a, true);
  const result = await again('pinChatMessage', { chat_id: user.id, message_id: a }, () =>
    one.store.pins.pin(chat, bot.sender, b, true),
  );
  expect([result, await pinned()]).toEqual([true, b]);
});

test('behaviour §5: unpinning all where none was leaves what was pinned since', async () => {
  const message = await send();
  await one.store.pins.unpinAll(chat, bot.sender);
  const result = await again('unpinAllChatMessages', { chat_id: user.id }, () =>
    one.store.pins.pin(chat, bot.sender, message, true),
  );
  expect([result, await pinned()]).toEqual([true, message]);
});
