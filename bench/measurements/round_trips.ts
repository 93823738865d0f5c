/** For goal P5: counts the commands that a front sends to Redis for one call on hot data. Uses MONITOR. */

import { setTimeout as sleep } from 'node:timers/promises';
import { limits } from '../../src/limits.js';
import { answerOf, call, expect, makePair } from '../../src/loadtest/client.js';
import type { Finding } from '../../src/loadtest/results.js';
import { openMonitor } from '../service/monitor.js';
import { makeMessages, makePeople, makePosts, type Person, type Post, text } from '../service/population.js';
import type { RedisWatch } from '../service/redis_watch.js';
import type { Service } from '../service/service.js';
import type { Measurement } from './measurement.js';

const repeats = 30;

interface Kind {
  readonly name: string;
  readonly goal: number;
  make(i: number): Promise<unknown>;
}

/** The commands sent by the front, and the commands that its scripts ran inside Redis. */
interface Seen {
  readonly asked: string[];
  inside: number;
}

async function watchFront({ redisUrl, signal }: Service, client: RedisWatch['client']) {
  let seen: Seen = { asked: [], inside: 0 };
  let front: ReadonlySet<string> = new Set();
  let ours = false;
  let echoed = '';
  const close = await openMonitor(redisUrl, ({ source, command, args }) => {
    if (source === 'lua') {
      if (ours) seen.inside++;
      return;
    }
    if (command === 'echo') echoed = args;
    // Ignores the commands with which a front regularly reports its state, because they do not belong to a call.
    ours =
      front.has(source) &&
      !/^(time|info)$/.test(command) &&
      !/:(auth_nodes|nodes|figures|postgres|rings)"/.test(args) &&
      !(command === 'hmget' && /:(installation|meta)"/.test(args));
    if (ours) seen.asked.push(command);
  });
  async function settle(mark: string): Promise<void> {
    await client.echo(mark);
    while (echoed !== `"${mark}"`) await sleep(1, undefined, { signal });
  }
  let marks = 0;
  return {
    async during(work: () => Promise<unknown>): Promise<Seen> {
      const list = String(await client.client('LIST'));
      const named = list.split('\n').filter((line) => line.includes(' name=petrel-front'));
      front = new Set(named.map((line) => / addr=(\S+)/.exec(line)?.[1] ?? ''));
      expect(front.size > 0, 'Redis has no connection of the front');
      await settle(`begin ${++marks}`);
      seen = { asked: [], inside: 0 };
      await work();
      await settle(`end ${marks}`);
      return seen;
    },
    close,
  };
}

async function kindsOf(service: Service): Promise<Kind[]> {
  const { baseUrl } = service.front;
  const pair = await makePair(baseUrl, service.adminToken, 'trips');
  const { bot, user } = pair;
  const hundred = limits.messages_batch_max;
  const ids = await makeMessages(service, pair, user.id, text, Math.max(hundred, repeats + 1));
  const [person] = (await makePeople(service, 'trips_reader', 1)) as [Person];
  const { posts } = await makePosts(service, person, repeats + 1);
  const chat = { chat_id: user.id };
  const from = { ...chat, from_chat_id: user.id };
  const bots = (method: string, body: object) => call(`${baseUrl}/bot${bot.token}/${method}`, { body });
  const path = (i: number) => `${baseUrl}/api/posts/${(posts[i] as Post).external_id}/reactions`;
  const emoji = '❤';
  const { token } = person;
  const message_ids = ids.slice(0, hundred);
  return [
    { name: 'getMe', goal: 0, make: () => bots('getMe', {}) },
    { name: 'sendMessage', goal: 1, make: () => bots('sendMessage', { ...chat, text }) },
    {
      name: 'editMessageText',
      goal: 1,
      make: (i) => bots('editMessageText', { ...chat, message_id: ids[i], text: `edited ${i}` }),
    },
    {
      name: 'pinChatMessage',
      goal: 1,
      make: (i) => bots('pinChatMessage', { ...chat, message_id: ids[i] }),
    },
    { name: 'a reaction set', goal: 1, make: (i) => answerOf(path(i), { token, body: { emoji } }) },
    { name: 'a reaction removed', goal: 1, make: (i) => answerOf(path(i), { verb: 'DELETE', token }) },
    ...(['forwardMessage', 'copyMessage'] as const).map((name) => ({
      name,
      goal: 2,
      make: (i: number) => bots(name, { ...from, message_id: ids[i] }),
    })),
    ...(['forwardMessages', 'copyMessages'] as const).map((name) => ({
      name: `${name}, ${hundred}`,
      goal: 2,
      make: () => bots(name, { ...from, message_ids }),
    })),
  ];
}

export const roundTrips: Measurement = {
  name: 'trips',
  async run(service, watch): Promise<Finding[]> {
    const kinds = await kindsOf(service);
    const follow = await watchFront(service, watch.client);
    const findings: Finding[] = [];
    try {
      for (const { name, goal, make } of kinds) {
        // The first call makes cold data hot, so it is not counted.
        await make(0);
        const { asked, inside } = await follow.during(async () => {
          for (let i = 1; i <= repeats; i++) await make(i);
        });
        const each = (n: number) => (n / repeats).toFixed(2).replace(/\.00$/, '');
        findings.push({
          key: `trips of ${name}`,
          proof: 'P5',
          value: asked.length / repeats,
          what: `round trips of ${name}`,
          measured: `${each(asked.length)} (commands of its scripts ${each(inside)})`,
          goal: String(goal),
          met: asked.length === goal * repeats,
        });
      }
    } finally {
      follow.close();
    }
    return findings;
  },
};
