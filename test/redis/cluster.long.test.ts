/**
 * Tests the whole service on a Redis Cluster whose masters are all up. `cluster_changes.long.test.ts` tests a master
 * that is down, moving slots and a failover.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type EventSource, eventually, openEvents } from '../clients/event_source.js';
import { resultOf } from '../support/service.js';
import {
  bots,
  cluster,
  groups,
  type Heard,
  keys,
  masters,
  offsets,
  onCluster,
  once,
  owner,
  poll,
  say,
  sayInGroup,
  service,
} from './cluster_world.js';

onCluster();

test('partitions are spread evenly over the masters, and every master runs scripts', async () => {
  const owners = await Promise.all(keys.partitions.slots.map((slot) => cluster.ownerOf(slot)));
  for (const i of masters) expect(owners.filter((each) => each === i).length).toBeGreaterThanOrEqual(21);
  for (const { client } of cluster.nodes) {
    expect(await client.info('commandstats')).toMatch(/cmdstat_evalsha:calls=\d{2}/);
  }
});

test('messages, buttons, streams and revoked tokens work on every master', async () => {
  const events: EventSource = await openEvents(service.fronts[0].url, owner.token);
  for (const bot of bots) {
    const received: Heard = { ids: [], texts: [] };
    await resultOf(say(bot, 'hello'));
    await eventually(async () => {
      await poll(bot, received);
      expect(once(received.texts, 'hello')).toBe(1);
    });
    const sent = await resultOf(
      service.bot(bot, 'sendMessage', {
        chat_id: owner.id,
        text: 'choose',
        reply_markup: { inline_keyboard: [[{ text: 'a', callback_data: 'pressed' }]] },
      }),
    );
    const path = `/api/chats/${bot.id}/messages/${sent.message_id}/callback`;
    await resultOf(service.app(owner, 'POST', path, { data: 'pressed' }));
    await eventually(async () => {
      await poll(bot, received);
      expect(received.texts).toContain('pressed');
    });
    await resultOf(
      service.bot(bot, 'editMessageText', {
        chat_id: owner.id,
        message_id: sent.message_id,
        text: `edited ${bot.id}`,
      }),
    );
    await events.received(
      ({ event, data }) => event === 'edited_message' && data.text === `edited ${bot.id}`,
    );
  }
  events.cut();
  const { id, token } = bots[2];
  await resultOf(service.bot(token, 'getMe', {}, 1));
  bots[2] = await resultOf(service.app(owner, 'POST', `/api/me/bots/${id}/regenerate_token`));
  expect((await service.bot(token, 'getMe', {}, 1)).status).toBe(401);
  await resultOf(service.bot(bots[2], 'getMe', {}, 1));
});

test("a long poll is woken by the master that stores the bot's queue", async () => {
  const took: number[] = [];
  for (const bot of bots) {
    await poll(bot, { ids: [], texts: [] });
    const began = performance.now();
    const waiting = service.bot(bot, 'getUpdates', { offset: offsets.get(bot.id), timeout: 20 }, 1);
    await sleep(300);
    await resultOf(say(bot, 'wake up'));
    const said = performance.now();
    expect(
      (await resultOf(waiting)).map((update: { message?: { text: string } }) => update.message?.text),
    ).toEqual(['wake up']);
    took.push(performance.now() - said);
    expect(performance.now() - began).toBeGreaterThan(250);
  }
  expect(Math.min(...took)).toBeLessThan(1_000);
});

test('bots on all masters get each update of a group once and in order, whichever master stores the group', async () => {
  for (const [i, group] of groups.entries()) {
    const texts = Array.from({ length: 10 }, (_, n) => `/to_all ${i} ${n}`);
    for (const text of texts) await resultOf(sayInGroup(group, text));
    for (const bot of bots) {
      const received: Heard = { ids: [], texts: [] };
      await eventually(async () => {
        await poll(bot, received);
        expect(received.texts.filter((text) => text?.startsWith(`/to_all ${i}`))).toEqual(texts);
      });
    }
  }
});
