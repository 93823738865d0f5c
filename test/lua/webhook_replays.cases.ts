import { expect } from 'vitest';
import type { Case } from './cases.js';
import { bot, direct, keys, partitionOf, seeds } from './world.js';

const home = partitionOf(direct);
const request = keys.request(home, 'once.replay.1.1');
const at = {
  ...{ meta: keys.meta(home), journal: keys.journal(home), state: keys.queueState(bot) },
  ...{ queue: keys.queue(bot), channel: keys.botChannel(bot), due: keys.webhooksDue(home), request },
};
const [state, stream] = [`queue_state:${bot}`, `queue:${bot}`];
const kept = 'req:once.replay.1.1';
const updates = [
  ...['17', 'message', `${bot}.9`, '1', 'r', 'f', 'p', 'y', 'x', ''],
  ...['18', 'edited_message', `${bot}.9`, '2', 'R', 'F', '', '', '', ''],
];
const replay = (what: string, more: Partial<Case> & Pick<Case, 'answer'>, args = {}): Case => ({
  ...{ script: 'webhooks/replay', what, keys: at, args: { bot: `${bot}`, updates, ...args } },
  ...more,
});

export const webhookReplayCases: readonly Case[] = [
  replay('queues updates after pending ones, with their former ids, even if the mask leaves them out', {
    seeds: [seeds.open(home), seeds.entry(41), seeds.queue({ hook: 7, mask: 0, bytes: 50 })],
    answer: ['ok', 2, 1],
    changes: [stream, state, 'webhooks_due', kept],
    async after(client) {
      const rows = await client.xrange(keys.queue(bot), '-', '+');
      expect(rows.map(([id]) => id)).toEqual(['41-0', '42-0', '43-0']);
      const [, fields = []] = rows[1] ?? [];
      expect(fields.filter((_, i) => i !== 3)).toEqual([
        ...['k', 'message', 't', 'c', `${bot}.9`, 'm', '1', 'r', 'r', 'f', 'f', 'p', 'p', 'y', 'y'],
        ...['x', 'x', 'u', '17'],
      ]);
      expect(Math.abs(Number(fields[3]) - Date.now())).toBeLessThan(60_000);
      const bytes = rows
        .slice(1)
        .flatMap(([, row]) => row.filter((_, i) => i % 2 === 1))
        .join('').length;
      expect(await client.hmget(keys.queueState(bot), 'bytes', 'mask', 'seq')).toEqual([
        `${50 + bytes}`,
        '0',
        '43',
      ]);
      // Redis keeps the request id for more than an hour, because the sweep may repeat the call much later.
      expect(await client.pttl(request)).toBeGreaterThan(3_600_000);
    },
  }),
  replay('wakes no worker for a bot that polls', {
    seeds: [seeds.open(home), seeds.queue()],
    answer: ['ok', 2, 0],
    changes: [stream, state, kept],
  }),
  replay('queues nothing on a repeat', {
    seeds: [seeds.open(home), seeds.queue({ hook: 7 }), seeds.text(request, '2')],
    answer: ['ok', 2, 0],
    changes: [],
  }),
  replay('answers a repeat while the journal is full', {
    seeds: [
      ...[seeds.open(home, { hw: 1 }), seeds.stream(keys.journal(home), 1)],
      ...[seeds.queue(), seeds.text(request, '2')],
    ],
    answer: ['ok', 2, 0],
    changes: [],
  }),
  replay(
    'refuses a different run id',
    { seeds: [seeds.open(home), seeds.queue()], answer: ['stale_run'] },
    { run: 'other' },
  ),
  replay('refuses while the journal is full', {
    seeds: [seeds.open(home, { hw: 1 }), seeds.stream(keys.journal(home), 1), seeds.queue()],
    answer: ['journal_full'],
  }),
  replay('reports a missing queue', { seeds: [seeds.open(home)], answer: ['queue_missing'] }),
];
