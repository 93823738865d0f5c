/**
 * Interrupts the handling of an update after each step, and then repeats the handling. Each effect happens once, and
 * each message is sent once.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ApiError } from '../../src/errors.js';
import { dataOf } from '../../src/manage/buttons.js';
import { fill, texts } from '../../src/manage/texts.js';
import { offerBot } from '../../src/postgres/bots/ownership.js';
import type { UpdateEntry } from '../../src/store/updates/queues.js';
import { startManager, type World, type Written } from './world.js';

let world: World;
beforeAll(async () => {
  world = await startManager();
});
afterAll(() => world.close());

const t = texts.en;
const inAnHour = () => Math.floor(Date.now() / 1_000) + 3_600;

/**
 * Handles an update again and again. The nth attempt stops after its nth step with Redis or Postgres, as if the process
 * had died before the result arrived. Ends when an attempt completes. Returns the number of stopped attempts.
 */
async function handleInPieces(update: UpdateEntry): Promise<number> {
  const { hooks } = world.node;
  const { call, query } = hooks;
  for (let last = 0; ; last++) {
    let steps = 0;
    let stop: () => void = () => undefined;
    const stopped = new Promise<'stopped'>((resolve) => {
      stop = () => resolve('stopped');
    });
    const step = async <T>(run: () => Promise<T>): Promise<T> => {
      if (steps++ !== last) return run();
      await run();
      stop();
      return new Promise<T>(() => undefined);
    };
    hooks.call = (_, run) => step(run);
    hooks.query = (_, run) => step(run);
    const end = await Promise.race([world.manager.handle(update), stopped]);
    hooks.call = call;
    hooks.query = query;
    if (end !== 'stopped') return last;
  }
}

const last = (written: readonly Written[]): Written => written.at(-1) ?? { id: 0, text: '', data: [] };

test('if an update is handled twice, only one bot is created and only one new token is issued', async () => {
  const { said, pressed, written, node } = world;
  const ann = await world.person();
  const username = 'pieces_bot';
  const texted = async () => (await written(ann)).map(({ text }) => text);

  const asked = await said(ann, '/newbot');
  expect(await handleInPieces(asked)).toBeGreaterThan(3);
  await handleInPieces(await said(ann, 'Pieces'));
  await handleInPieces(await said(ann, username));
  const created = fill(t.created, { name: 'Pieces', username, token: t.token_hidden });
  expect(await texted()).toEqual([t.ask_new_name, fill(t.ask_new_username, { name: 'Pieces' }), created]);
  const [bot, ...others] = await node.store.bots.listOf(ann.id, 0, 100);
  if (bot === undefined) throw new Error('no bot was made');
  expect(others).toEqual([]);
  // An update that was answered long ago is not handled again.
  await world.manager.handle(asked);
  expect(await texted()).toHaveLength(3);

  const first = await node.store.bots.token(ann.id, bot.id);
  await world.manager.handle(await said(ann, '/revoke'));
  const question = last(await written(ann));
  await handleInPieces(await pressed(ann, question.id, question.data[0] ?? ''));
  const second = await node.store.bots.token(ann.id, bot.id);
  expect(second).not.toBe(first);
  const issued = await node.db.query('select 1 from bot_audit where bot_id = $1 and event = $2', [
    ...[bot.id, 'token_issued'],
  ]);
  expect(issued).toHaveLength(1);
  expect((await texted()).filter((text) => text.startsWith('The old token'))).toHaveLength(1);

  expect(world.errors).toEqual([]);
});

test('if an update is handled twice, the update transfers or deletes a bot only once', async () => {
  const { said, pressed, written, node } = world;
  const [ann, bob] = [await world.person(), await world.person()];
  const username = 'moving_bot';
  const { bot } = await node.store.bots.create(ann.id, username, 'Moving');
  await world.manager.handle(await said(ann, '/transfer'));
  await handleInPieces(await said(ann, bob.username));
  const consequences = last(await written(ann));
  expect(consequences.text).toBe(fill(t.transfer_ask, { username, recipient: bob.username }));
  await handleInPieces(await pressed(ann, consequences.id, consequences.data[0] ?? ''));
  expect(last(await written(ann)).text).toBe(fill(t.transferred, { username, recipient: bob.username }));
  expect(await node.store.bots.listOf(ann.id, 0, 100)).toEqual([]);
  expect((await node.store.bots.listOf(bob.id, 0, 100)).map(({ id }) => id)).toEqual([bot.id]);

  await world.manager.handle(await said(bob, '/deletebot'));
  const doubt = last(await written(bob));
  await handleInPieces(await pressed(bob, doubt.id, doubt.data[0] ?? ''));
  expect(await node.store.bots.listOf(bob.id, 0, 100)).toEqual([]);
  expect(last(await written(bob)).text).toMatch(/has been deleted/);
  expect(await node.db.query('select 1 from notices where user_id = $1', [bob.id])).toHaveLength(1);
  expect(world.errors).toEqual([]);
});

test('the buttons of a transfer notice accept or decline the offered bot', async () => {
  const { node, pressed, written, manager } = world;
  const [ann, bob] = [await world.person(), await world.person()];
  const { bot } = await node.store.bots.create(ann.id, 'offered_bot', 'Offered');
  const offer = async () => {
    await offerBot(node.db, bot.id, ann.id, bob.username, 60_000);
    await world.tell();
    return last(await written(bob));
  };
  const first = await offer();
  expect(first.text).toBe(
    fill(t.notice_transfer_offered, { from: `@${ann.username}`, username: 'offered_bot' }),
  );
  await handleInPieces(await pressed(bob, first.id, first.data[1] ?? ''));
  expect(last(await written(bob)).text).toBe(fill(t.offer_declined, { username: 'offered_bot' }));
  expect((await node.store.bots.owned(ann.id, bot.id)).id).toBe(bot.id);
  await world.tell();
  expect(last(await written(ann)).text).toBe(
    fill(t.notice_transfer_declined, { to: `@${bob.username}`, username: 'offered_bot' }),
  );

  const second = await offer();
  await handleInPieces(await pressed(bob, second.id, second.data[0] ?? ''));
  expect((await node.store.bots.owned(bob.id, bot.id)).id).toBe(bot.id);
  await world.tell();
  expect(last(await written(ann)).text).toBe(
    fill(t.notice_transfer_accepted, { to: `@${bob.username}`, username: 'offered_bot' }),
  );
  expect((await written(bob)).map(({ text }) => text)).toEqual([
    fill(t.offer_declined, { username: 'offered_bot' }),
    fill(t.offer_accepted, { username: 'offered_bot' }),
  ]);
  await manager.handle(await world.said(bob, 'thanks'));
  expect(world.errors).toEqual([]);
});

test('the management bot hides a leaked token until a new token is issued', async () => {
  const { node, pressed, said, written, manager } = world;
  const ann = await world.person();
  const username = 'leaky_bot';
  const { bot, token } = await node.store.bots.create(ann.id, username, 'Leaky');
  await node.store.leaks.report([{ token, place: 'https://example.org/code' }], 'scan');
  await world.tell();
  expect((await written(ann)).map(({ text }) => text)).toEqual([
    fill(t.notice_leak_found, { username, where: 'example.org/code' }),
  ]);
  await manager.handle(await said(ann, '/token'));
  const page = last(await written(ann));
  expect(page.text).toBe(fill(t.token_page, { username }));
  await manager.handle(await pressed(ann, page.id, dataOf({ ask: 'show_token', bot: bot.id })));
  expect(last(await written(ann))).toEqual(page);
  await manager.handle(await said(ann, '/revoke'));
  const question = last(await written(ann));
  await manager.handle(await pressed(ann, question.id, question.data[0] ?? ''));
  const fresh = await node.store.bots.token(ann.id, bot.id);
  expect(fresh).not.toBe(token);
  await manager.handle(await pressed(ann, page.id, dataOf({ ask: 'show_token', bot: bot.id })));
  expect(last(await written(ann)).text).toBe(fill(t.token_shown, { username, token: t.token_hidden }));
  expect(world.errors).toEqual([]);
});

test('forged buttons cannot change the bot of another person', async () => {
  const { said, written, node, manager } = world;
  const [ann, eve] = [await world.person(), await world.person()];
  const { bot } = await node.store.bots.create(ann.id, 'ann_own_bot', 'Own');
  await manager.handle(await said(eve, '/mybots'));
  const before = await node.store.bots.owned(ann.id, bot.id);
  const update = await said(eve, 'anything');
  const forged = (data: string): UpdateEntry => ({
    ...{ ...update, kind: 'callback_query', updateId: update.updateId + 1, shownId: update.shownId + 1 },
    press: { message_id: update.message.id, data },
  });
  const until = inAnHour();
  const shown = await written(eve);
  for (const data of [
    ...[dataOf({ ask: 'show_token', bot: bot.id }), dataOf({ ask: 'issue', bot: bot.id, until })],
    ...[
      dataOf({ ask: 'transfer', bot: bot.id, to: eve.id, until }),
      dataOf({ ask: 'delete', bot: bot.id, until }),
    ],
    ...[
      dataOf({ ask: 'writers', bot: bot.id, policy: 'owner' }),
      dataOf({ ask: 'page', page: 'k', bot: bot.id }),
    ],
    ...[
      dataOf({ ask: 'write', page: 'n', bot: bot.id, language: 'ru' }),
      dataOf({ ask: 'page', page: 'g', bot: bot.id }),
    ],
    ...[dataOf({ ask: 'remove', page: 'n', bot: bot.id, language: '' }), '1:t', '2:t:1', '', 'x'.repeat(64)],
  ]) {
    await manager.handle(forged(data));
    expect(await written(eve), data).toEqual(shown);
  }
  expect(await node.store.bots.owned(ann.id, bot.id)).toEqual(before);

  // The owner presses buttons of a question that has expired.
  const late = Math.floor(Date.now() / 1_000) - 1;
  const received = await said(ann, 'anything');
  for (const [i, ask] of (['issue', 'delete'] as const).entries()) {
    const id = received.shownId + 10 + i;
    await manager.handle({
      ...{ ...received, kind: 'callback_query', updateId: id, shownId: id },
      press: { message_id: received.message.id, data: dataOf({ ask, bot: bot.id, until: late }) },
    });
  }
  expect(await node.store.bots.owned(ann.id, bot.id)).toEqual(before);
  expect(await written(ann)).toEqual([]);
  expect(world.errors).toEqual([]);
});

test('while Postgres is unavailable, the management bot still answers a person immediately', async ({
  onTestFinished,
}) => {
  const { node, said, written, manager } = world;
  const zoe = await world.person();
  const update = await said(zoe, '/newbot');
  const { query } = node.hooks;
  onTestFinished(() => {
    node.hooks.query = query;
  });
  node.hooks.query = () => Promise.reject(new ApiError('unavailable', { retry_after: 1 }));
  await manager.handle(update);
  node.hooks.query = query;
  expect((await written(zoe)).map(({ text }) => text)).toEqual([t.later]);
});

test('an update from a person who has blocked the management bot is handled without an error', async () => {
  const { node, said, written, manager } = world;
  const yan = await world.person();
  const update = await said(yan, '/newbot');
  await node.store.chats.setBlocked(manager.bot, yan.id, true);
  await manager.handle(update);
  expect(await written(yan)).toEqual([]);
  expect(world.errors).toEqual([]);
});
