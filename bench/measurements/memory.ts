/**
 * For goal P7: measures how many bytes in Redis a hot message, a pending update and a reaction take. Reads the memory
 * of keys, expiry entries and hash tables before and after many records are created. Before each reading, the journal
 * is drained and remembered request ids are deleted.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { call, expect, inParallel, makePair, type Pair } from '../../src/loadtest/client.js';
import type { Finding } from '../../src/loadtest/results.js';
import { readDiskWrites } from '../service/disk_writes.js';
import { fillReactions, untilFlushed } from '../service/fill_reactions.js';
import {
  makeManyBots,
  makeMessages,
  makePeople,
  makePosts,
  openManyChats,
  type Person,
  type Post,
} from '../service/population.js';
import type { RedisWatch } from '../service/redis_watch.js';
import type { Service } from '../service/service.js';
import type { Measurement } from './measurement.js';

const words = 'Three hundred bytes of a letter that is neither short nor long. '.repeat(5).slice(0, 300);

/** Waits until Postgres has every change, and then returns the bytes of all data in Redis. */
async function settledBytes(service: Service, watch: RedisWatch): Promise<number> {
  await untilFlushed(watch, service.signal);
  await watch.forgetRequests();
  // After the journal is empty, waits a moment until the flusher has set expiry times and Redis has freed its buffers.
  await sleep(300, undefined, { signal: service.signal });
  return watch.dataBytes();
}

const rounded = (bytes: number) => `${Math.round(bytes).toLocaleString('en')} bytes`;

const figure = (key: string, what: string, bytes: number): Finding => ({
  ...{ key, what, proof: '', measured: rounded(bytes), value: bytes, goal: '', met: null },
});

async function hotMessages(
  service: Service,
  watch: RedisWatch,
  pair: Pair,
  count: number,
): Promise<Finding[]> {
  const { bot, user } = pair;
  const chat = { id: bot.id, user: user.id };
  const [first] = await makeMessages(service, pair, user.id, words, 2);
  const before = await settledBytes(service, watch);
  const { stored: storedBefore } = await readDiskWrites(service, watch);
  const ids = await makeMessages(service, pair, user.id, words, count);
  const bytes = ((await settledBytes(service, watch)) - before) / count;
  const stored = ((await readDiskWrites(service, watch)).stored - storedBefore) / count;
  const [sent, copied] = await Promise.all(
    [first, ids.at(-1)].map((id) => watch.client.memory('USAGE', watch.keys.message(chat, id ?? 0))),
  );
  expect(Math.abs((sent ?? 0) - (copied ?? 0)) <= 16, `a message takes ${sent} bytes and a copy ${copied}`);
  const deadline = await watch.client.pttl(watch.keys.message(chat, ids.at(-1) ?? 0));
  expect(deadline > 0, 'a message that is in Postgres has no expiry');
  const own = await Promise.all(
    [watch.keys.chat(chat), watch.keys.changes(chat)].map((key) => watch.client.memory('USAGE', key)),
  );
  return [
    {
      key: 'bytes of a hot message',
      proof: 'P7',
      value: bytes,
      what: `a hot message with ${words.length} bytes of text, of ${ids.length.toLocaleString('en')}`,
      measured: `${rounded(bytes)} (its chat has a record of ${own[0]} and a log of ${own[1] ?? 0})`,
      goal: '700',
      met: bytes <= 700,
    },
    figure('bytes of a stored message', `such a message in Postgres`, stored),
  ];
}

async function pendingUpdates(
  service: Service,
  watch: RedisWatch,
  pair: Pair,
  count: number,
): Promise<Finding> {
  const { bot, user } = pair;
  const updates = <T>(query: string) =>
    call<T>(`${service.front.baseUrl}/bot${bot.token}/getUpdates?${query}`, {});
  // Confirms pending updates, because the first message in the chat also created an update.
  const [begin] = await updates<Array<{ update_id: number }>>('offset=-1');
  if (begin) await updates(`offset=${begin.update_id + 1}`);
  await inParallel(count, 16, () =>
    call(`${service.front.baseUrl}/api/chats/${bot.id}/messages`, {
      token: user.token,
      body: { text: words },
    }),
  );
  const before = await settledBytes(service, watch);
  const waiting = await watch.client.xlen(watch.keys.queue(bot.id));
  expect(waiting === count, `${waiting} updates are pending instead of ${count}`);
  const payload = Number(await watch.client.hget(watch.keys.queueState(bot.id), 'bytes')) / count;
  const [last] = await updates<Array<{ update_id: number }>>('offset=-1');
  const shown = JSON.stringify(last).length;
  await updates(`offset=${(last?.update_id ?? 0) + 1}`);
  const bytes = (before - (await settledBytes(service, watch))) / count;
  const ratio = bytes / payload;
  return {
    key: 'bytes of a pending update',
    proof: 'P7',
    value: bytes,
    what: `a pending update, of ${count.toLocaleString('en')}`,
    measured: `${rounded(bytes)}, ${ratio.toFixed(2)} × its values of ${rounded(payload)} (${shown} as JSON)`,
    goal: '1.4 ×',
    met: ratio <= 1.4,
  };
}

const heart = '❤';

/** Twenty people react to each post. The result is the cost of a reaction on a post with few reactions. */
async function fewReactions(service: Service, watch: RedisWatch, on: number): Promise<Finding> {
  const each = 20;
  const [owner] = (await makePeople(service, 'memory_reader', 1)) as [Person];
  const { posts } = await makePosts(service, owner, on);
  const before = await settledBytes(service, watch);
  for (const { id } of posts) await fillReactions(watch, id, heart, each);
  const bytes = ((await settledBytes(service, watch)) - before) / (each * on);
  return reactionFinding(
    'bytes of a reaction among few',
    `a reaction, ${each} on each of ${on} posts`,
    bytes,
  );
}

async function manyReactions(service: Service, watch: RedisWatch, count: number): Promise<Finding[]> {
  const [owner] = (await makePeople(service, 'memory_owner', 1)) as [Person];
  const { posts } = await makePosts(service, owner, 1);
  const before = await settledBytes(service, watch);
  const { stored: storedBefore } = await readDiskWrites(service, watch);
  await fillReactions(watch, (posts[0] as Post).id, heart, count);
  const bytes = ((await settledBytes(service, watch)) - before) / count;
  const stored = ((await readDiskWrites(service, watch)).stored - storedBefore) / count;
  return [
    reactionFinding(
      'bytes of a reaction among many',
      `a reaction, ${count.toLocaleString('en')} on one post`,
      bytes,
    ),
    figure('bytes of a stored reaction', 'a reaction in Postgres', stored),
  ];
}

const reactionFinding = (key: string, what: string, bytes: number): Finding => ({
  key,
  value: bytes,
  proof: 'P7',
  what,
  measured: rounded(bytes),
  goal: '100',
  met: bytes <= 100,
});

/** Measures the memory of a chat, a bot and a request id for the capacity model. */
async function others(service: Service, watch: RedisWatch, pair: Pair, count: number): Promise<Finding[]> {
  const { front } = service;
  const send = (token: string, chat_id: number) =>
    call(`${front.baseUrl}/bot${token}/sendMessage`, { body: { chat_id, text: words } });
  const before = await settledBytes(service, watch);
  const people = await openManyChats(service, pair, count);
  await inParallel(count, 16, (i) => send(pair.bot.token, people[i] as number));
  await untilFlushed(watch, service.signal);
  const remembered = await watch.dataBytes();
  const requests = await watch.forgetRequests();
  const forgotten = await watch.dataBytes();
  const withChats = await settledBytes(service, watch);
  const [owner] = (await makePeople(service, 'memory_bots', 1)) as [Person];
  const bots = await makeManyBots(service, owner, count);
  await inParallel(count, 16, (i) => call(`${front.baseUrl}/bot${bots[i]?.token}/getMe`));
  const withBots = await settledBytes(service, watch);
  return [
    figure('bytes of a hot chat', 'a hot direct chat with one message', (withChats - before) / count),
    figure('bytes of a bot', 'a bot that calls, its token included', (withBots - withChats) / count),
    figure(
      'bytes of a remembered request',
      'a request that is remembered for a minute',
      (remembered - forgotten) / requests,
    ),
  ];
}

export const memory: Measurement = {
  name: 'memory',
  async run(service, watch, { entities, posts }) {
    const pair = await makePair(service.front.baseUrl, service.adminToken, 'memory');
    return [
      ...(await hotMessages(service, watch, pair, entities)),
      await pendingUpdates(service, watch, pair, Math.ceil(entities / 4)),
      await fewReactions(service, watch, posts),
      ...(await manyReactions(service, watch, entities)),
      ...(await others(service, watch, pair, Math.ceil(entities / 20))),
    ];
  },
};
