/**
 * Tests webhook calls that are repeated with the same idempotency key after the node of the first run has died. The
 * repeated call keeps all changes that were made after the first run, and returns the answer of the first run.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { call, dieAt, dieUnnoted, outwait } from '../support/keyed.js';
import {
  makeDirect,
  type Person,
  poll,
  shown,
  startCluster,
  type TestCluster,
  type TestNode,
  text,
} from '../support/store.js';

let cluster: TestCluster;
let one: TestNode;
let two: TestNode;

beforeAll(async () => {
  cluster = await startCluster();
  [one, two] = [await cluster.node(), await cluster.node()];
  await Promise.all([one.store.auth.start(), two.store.auth.start()]);
});
afterAll(() => cluster?.close());

const settings = {
  ...{ url: 'https://203.0.113.9/x', secretToken: null, certificate: null },
  ...{ maxConnections: 40, address: '203.0.113.9' },
};
const keepQueue = { drop: false, mask: null };

let keys = 0;

/**
 * Makes a call whose node dies, then runs `meanwhile`, then makes the same call on another node. Returns the answer to
 * the second call.
 */
async function again(caller: Person, method: string, params: object, meanwhile: () => Promise<unknown>) {
  const key = `again ${++keys}`;
  await dieUnnoted(one, () => call(one, caller, method, params, key));
  await meanwhile();
  return answered(call(two, caller, method, params, key));
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
async function answered(calling: ReturnType<typeof call>): Promise<any> {
  const { status, body } = await calling;
  expect(status).toBe(200);
  return JSON.parse(body);
}

async function newBot() {
  const { user, bot, chat } = await makeDirect(one);
  const say = (words: string) => one.store.messages.send(chat, user.sender, text(words));
  return { user, bot, say, path: `/api/me/bots/${bot.id}/webhook` };
}
const waiting = async (bot: Person) => shown(await poll(one, bot));

test.each([true, false])(
  'a repeated deleteWebhook that dropped pending updates does not drop later updates (webhook set: %s)',
  async (set) => {
    const { bot, say } = await newBot();
    await say('old');
    if (set) await one.store.webhooks.set(bot.id, settings, keepQueue);
    const reply = await again(bot, 'deleteWebhook', { drop_pending_updates: true }, () => say('new'));
    const description = set ? 'Webhook was deleted' : 'Webhook is already deleted';
    expect(reply).toEqual({ ok: true, result: true, description });
    expect(await waiting(bot)).toEqual(['new']);
    await answered(call(two, bot, 'deleteWebhook', { drop_pending_updates: true }, `other ${keys}`));
    expect(await waiting(bot)).toEqual([]);
  },
);

test('a repeated deleteWebhook drops the pending updates if the first run died before the drop', async () => {
  const { bot, say } = await newBot();
  await say('old');
  const state = dieAt(one, 'webhooks/switch', 'before');
  void call(one, bot, 'deleteWebhook', { drop_pending_updates: true }, 'cut');
  await expect.poll(() => state.died).toBe(true);
  one.hooks.call = (_, run) => run();
  await outwait(one);
  expect(await waiting(bot)).toEqual(['old']);
  const repeat = () => answered(call(two, bot, 'deleteWebhook', { drop_pending_updates: true }, 'cut'));
  await repeat();
  expect(await waiting(bot)).toEqual([]);
  await say('new');
  await one.store.webhooks.set(bot.id, settings, keepQueue);
  await repeat();
  expect(await one.store.webhooks.find(bot.id)).toMatchObject({ url: settings.url });
  expect((await one.store.queues.info(bot.id)).pending).toBe(1);
});

test('a repeated rotation replaces the signing secret only once', async () => {
  const { user, bot, path } = await newBot();
  const { secret: first } = await one.store.signingSecrets.show(user.id, bot.id);
  const reply = await again(user, `POST ${path}/secret/rotate`, {}, async () => undefined);
  const { secret, formerUntil } = await one.store.signingSecrets.show(user.id, bot.id);
  expect(reply.result).toMatchObject({ secret });
  expect(secret).not.toBe(first);
  expect(formerUntil).not.toBeNull();
  await one.store.webhooks.set(bot.id, settings, keepQueue);
  expect((await one.store.webhooks.find(bot.id))?.signing).toEqual([secret, first]);
});

async function bury({ bot, say }: Awaited<ReturnType<typeof newBot>>, ...texts: string[]) {
  await one.store.webhooks.set(bot.id, settings, keepQueue);
  for (const words of texts) await say(words);
  const lease = await one.store.deliveries.lease(bot.id, 100);
  if (typeof lease === 'string') throw new Error(lease);
  const ids = lease.fresh.map(({ id }) => id);
  expect(await one.store.deliveries.deadLetter(bot.id, lease.fence, 'expired', ids)).toBe(true);
  await cluster.flush();
  await one.store.webhooks.remove(bot.id, false);
  await one.connection.client.hdel(cluster.keys.queueState(bot.id), 'leased');
}

test('a repeated discard of dead letters removes no later dead letters', async () => {
  const made = await newBot();
  await bury(made, 'a', 'b');
  const discard = `DELETE ${made.path}/dead_letters`;
  const reply = await again(made.user, discard, {}, () => bury(made, 'c'));
  expect(reply.result).toEqual({ discarded: 2 });
  expect(await one.store.replays.countDead(made.bot.id)).toBe(1);
});

test('a repeated replay queues the same dead letters once, and keeps dead letters that were added later', async () => {
  const made = await newBot();
  await bury(made, 'a', 'b');
  const reply = await again(made.user, `POST ${made.path}/replay`, { dead_letters: true }, async () => {
    expect(await waiting(made.bot)).toEqual(['a', 'b']);
    await one.store.webhooks.remove(made.bot.id, true);
    await bury(made, 'c');
  });
  expect(reply.result).toEqual({ queued: 2 });
  expect(await one.store.replays.countDead(made.bot.id)).toBe(1);
  expect(await waiting(made.bot)).toEqual([]);
});

test('a repeated replay queues the dead letters once, even if the first run died before it queued them', async () => {
  const made = await newBot();
  await bury(made, 'a', 'b');
  const params = { dead_letters: true };
  const state = dieAt(one, 'webhooks/replay', 'before');
  void call(one, made.user, `POST ${made.path}/replay`, params, 'half');
  await expect.poll(() => state.died).toBe(true);
  one.hooks.call = (_, run) => run();
  await outwait(one);
  expect(await waiting(made.bot)).toEqual([]);
  const reply = await answered(call(two, made.user, `POST ${made.path}/replay`, params, 'half'));
  expect(reply.result).toEqual({ queued: 2 });
  expect(await waiting(made.bot)).toEqual(['a', 'b']);
});
