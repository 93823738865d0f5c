/**
 * Tests that deliveries to other bots continue if receivers misbehave, if the wake queue loses all its keys, or if
 * there are very many updates.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Histogram } from 'hdr-histogram-js';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { openMasters } from '../support/cluster.js';
import { resultOf, type Service, startService, type TestBot } from '../support/service.js';
import { amount, atLeast, atMost, long, patienceMs, report } from './report.js';
import {
  certificate,
  type Lane,
  missing,
  newHistogram,
  openLanes,
  say,
  startTally,
  type Tally,
  talk,
} from './tally.js';
import { eventually } from './world.js';

let service: Service;
beforeAll(async () => {
  // Delivered messages may leave Redis, because nobody reads them again.
  const extraEnv = {
    PARTITIONS: '16',
    WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32',
    HOT_TTL_MS: `${limits.hot_ttl_ms_min}`,
  };
  service = await startService({ fronts: 1, extraEnv });
});
afterAll(() => service?.stop());

const botsOf = (lanes: readonly Lane[]) => [...new Set(lanes.map(({ bot }) => bot))];

async function pushTo(tally: Tally, lanes: readonly Lane[]): Promise<void> {
  await Promise.all(
    botsOf(lanes).map((bot) =>
      resultOf(service.bot(bot, 'setWebhook', { ...tally.settings(bot), drop_pending_updates: true })),
    ),
  );
}

async function talkFor(
  lanes: readonly Lane[],
  everyMs: number,
  ms: number,
  calls?: Histogram,
): Promise<void> {
  await talk(service, lanes, everyMs, AbortSignal.timeout(ms), calls);
}

const arrived = (tally: Tally, lanes: readonly Lane[], msMax = 30_000) =>
  eventually('all messages arrived', () => missing(tally, lanes) === 0, msMax).catch(() => undefined);

const p99 = (histogram: Histogram) => Math.max(1, histogram.getValueAtPercentile(99));
const median = (values: readonly number[]) =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] as number;
const round2 = (value: number) => Math.round(value * 100) / 100;

const kinds = ['hang', 'drip', 'flood', 'bomb', 'redirect'] as const;
type HostileCounts = Partial<Record<string, { requests: number; longestMs: number; bytes: number }>>;

async function startHostile(): Promise<{ port: number; counts(): Promise<HostileCounts>; stop(): void }> {
  const child: ChildProcess = fork(fileURLToPath(new URL('hostile.mjs', import.meta.url)));
  const answer = async (question: object) => {
    const answered = once(child, 'message');
    child.send(question);
    const [message] = await answered;
    return message as { port: number; counts: HostileCounts };
  };
  const { port } = await answer(certificate);
  return { port, counts: async () => (await answer({})).counts, stop: () => void child.disconnect() };
}

test(
  'R9: receivers that hang, redirect or send endless answers do not delay other bots',
  async ({ onTestFinished }) => {
    const tally = await startTally();
    const hostile = await startHostile();
    onTestFinished(async () => {
      hostile.stop();
      await tally.close();
    });
    const lanes = await openLanes(service, 3, 20);
    const victims = await openLanes(service, kinds.length, 4);
    const hook = (bot: TestBot, url: string) =>
      resultOf(
        service.bot(bot, 'setWebhook', { url, certificate: certificate.cert, drop_pending_updates: true }),
      );
    await pushTo(tally, lanes);
    await talkFor(lanes, 500, amount(500, 5_000));
    await arrived(tally, lanes);
    tally.latencies();
    // Phases with and without bad receivers alternate, so that other load on the machine affects both kinds of phases.
    // In the long form, a phase lasts longer than an attempt that hangs.
    const rounds = amount(1, 7);
    const p99s: Array<{ readonly calm: number; readonly beside: number }> = [];
    const calls = { calm: newHistogram(), beside: newHistogram() };
    for (let round = 0; round < rounds; round++) {
      const last = round === rounds - 1;
      const phaseMs = long ? 12_000 : 1_200;
      await talkFor(lanes, 500, phaseMs, calls.calm);
      await arrived(tally, lanes);
      const calm = p99(tally.latencies());
      await Promise.all(
        botsOf(victims).map((bot, i) => hook(bot, `https://127.0.0.1:${hostile.port}/${kinds[i]}`)),
      );
      const untilMs = long && last ? limits.webhook_deadline_ms + 10_000 : phaseMs;
      await Promise.all([talkFor(lanes, 500, untilMs, calls.beside), talkFor(victims, 1_000, untilMs)]);
      await arrived(tally, lanes);
      p99s.push({ calm, beside: p99(tally.latencies()) });
      if (!last) await Promise.all(botsOf(victims).map((bot) => hook(bot, '')));
    }
    let counts: HostileCounts = {};
    await eventually('each receiver was tried', async () => {
      counts = await hostile.counts();
      return kinds.every((kind) => (counts[kind]?.requests ?? 0) > 0);
    });
    const longestMs = Math.max(...kinds.map((kind) => counts[kind]?.longestMs ?? 0));
    const ratio = round2(median(p99s.map(({ calm, beside }) => beside / calm)));
    report(
      'R9',
      'receivers that hang, drip, send 1 GB or a gzip bomb, redirect',
      {
        ...{ p99CalmMs: p99s.map(({ calm }) => calm), p99BesideMs: p99s.map(({ beside }) => beside) },
        // Also reports the latency of the calls, because the delivery time includes the time that a call spends in the
        // front.
        ...{ callP99CalmMs: p99(calls.calm), callP99BesideMs: p99(calls.beside) },
        ...{ pushed: tally.counts.taken, hostile: counts },
      },
      [
        atMost('lost or reordered for other bots', missing(tally, lanes), 0),
        atMost("other bots' p99, times that without: median of rounds", ratio, 1.2),
        atMost('longest attempt, ms', longestMs, limits.webhook_deadline_ms + 1_000),
        atMost('redirects followed', counts.target?.requests ?? 0, 0),
        // This count includes bytes that the receiver has written but the sender has not read, because the kernels on
        // both sides buffer data. The tests of the sender check how many bytes the sender reads.
        atMost('bytes of 1 GB that left the receiver', counts.flood?.bytes ?? 0, 32 * 2 ** 20),
      ],
    );
    expect(missing(tally, lanes)).toBe(0);
    expect(counts.target).toBeUndefined();
    expect(counts.flood?.bytes).toBeLessThan(32 * 2 ** 20);
    expect(longestMs).toBeLessThan(limits.webhook_deadline_ms + 5_000);
  },
  patienceMs,
);

test(
  'R10: if the receiver refuses the updates of one chat, other chats are not delayed, and the chat later gets its updates in order',
  async ({ onTestFinished }) => {
    let sick: number | undefined;
    const tally = await startTally((_, user) => (user === sick ? 500 : 200));
    onTestFinished(() => tally.close());
    const lanes = await openLanes(service, 1, 10);
    const [one, ...others] = lanes as [Lane, ...Lane[]];
    await pushTo(tally, lanes);
    await talkFor(lanes, 200, amount(1_000, 30_000));
    await arrived(tally, lanes);
    const calm = tally.latencies();
    sick = one.user.id;
    await talkFor(lanes, 200, amount(1_500, 60_000));
    await arrived(tally, others);
    const beside = tally.latencies();
    const [missed, waiting] = [missing(tally, others), missing(tally, [one])];
    sick = undefined;
    // Waits long enough for the next retry, which may be a minute away.
    await arrived(tally, lanes, 150_000);
    const ratio = round2(beside.getValueAtPercentile(99) / calm.getValueAtPercentile(99));
    report(
      'R10',
      'a chat whose updates are always refused',
      {
        ...{ pushed: tally.counts.taken, refusedAtLast: waiting },
        ...{ p99CalmMs: calm.getValueAtPercentile(99), p99BesideMs: beside.getValueAtPercentile(99) },
      },
      [
        atMost('lost or reordered for other chats while it was refused', missed, 0),
        atMost("other chats' p99, times that without", ratio, 1.2),
        atMost('lost or reordered once healed', missing(tally, lanes), 0),
      ],
    );
    expect(waiting).toBeGreaterThan(0);
    expect(missed).toBe(0);
    expect(missing(tally, lanes)).toBe(0);
  },
  patienceMs,
);

test(
  'R12: updates arrive even if every key of the wake queue is deleted',
  async ({ onTestFinished }) => {
    const tally = await startTally();
    const masters = openMasters(service.redis);
    onTestFinished(async () => {
      for (const master of masters) master.disconnect();
      await tally.close();
    });
    const busy = await openLanes(service, 3, 5);
    // The users of these bots write so seldom that no worker is serving the bot. Each message therefore needs a wake-up
    // job.
    const seldom = await openLanes(service, 6, 1);
    await pushTo(tally, [...busy, ...seldom]);
    const ended = new AbortController();
    const talking = talk(service, busy, 250, ended.signal);
    await sleep(amount(500, 10_000));
    const longestCalmMs = tally.latencies().maxValue;
    const wipes = amount(2, 20);
    let deleted = 0;
    const wipe = async () => {
      for (const master of masters) {
        // Sends a separate command for each queue, because all keys of a command must be in one slot.
        const queues = new Map<string, string[]>();
        for (const key of await master.keys('*:doorbell:*')) {
          const tag = key.slice(0, key.indexOf('}'));
          queues.set(tag, [...(queues.get(tag) ?? []), key]);
        }
        for (const keys of queues.values()) deleted += await master.del(...keys);
      }
    };
    for (let n = 0; n < wipes; n++) {
      // The pause is longer than the time for which a worker keeps serving an idle bot.
      await sleep(2_000);
      await wipe();
      await Promise.all(seldom.map((lane) => say(service, lane)));
      // Also deletes the wake-up jobs that these messages caused.
      await wipe();
    }
    ended.abort();
    await talking;
    const all = [...busy, ...seldom];
    await arrived(tally, all);
    const lateMs = tally.latencies().maxValue;
    const figures = { wipes, deleted, pushed: tally.counts.taken, longestCalmMs };
    report('R12', 'all keys of BullMQ deleted under load', figures, [
      atMost('lost or reordered', missing(tally, all), 0),
      atMost('longest time until an update came, ms', lateMs, 3_000),
      atLeast('keys deleted', deleted, wipes),
    ]);
    expect(missing(tally, all)).toBe(0);
    expect(deleted).toBeGreaterThanOrEqual(wipes);
  },
  patienceMs,
);

test(
  'R13: without faults, each of a very large number of updates is delivered once',
  async ({ onTestFinished }) => {
    const tally = await startTally();
    onTestFinished(() => tally.close());
    const count = amount(2_000, 1_000_000);
    const lanes = await (count > 10_000 ? openLanes(service, 20, 50) : openLanes(service, 4, 10));
    await pushTo(tally, lanes);
    const began = performance.now();
    let left = count;
    let said = 0;
    await Promise.all(
      lanes.map(async (lane) => {
        while (left-- > 0) {
          // A queue keeps 100,000 updates. If updates were sent faster than they are delivered, some would become dead
          // letters.
          while (said - tally.counts.taken > 20_000) await sleep(50);
          await say(service, lane);
          said++;
        }
      }),
    );
    await arrived(tally, lanes, amount(30_000, 600_000));
    const seconds = (performance.now() - began) / 1_000;
    // Waits a moment, in which a duplicate would arrive.
    await sleep(amount(1_000, 10_000));
    const { taken, doubled } = tally.counts;
    report(
      'R13',
      'deliveries without faults',
      {
        ...{
          perSecond: Math.round(taken / seconds),
          heapMiB: Math.round(process.memoryUsage().heapUsed / 2 ** 20),
        },
      },
      [
        atLeast('delivered', taken, count),
        atMost('lost or reordered', missing(tally, lanes), 0),
        atMost('doubled', doubled, 0),
      ],
    );
    expect([taken, doubled, missing(tally, lanes)]).toEqual([count, 0, 0]);
  },
  patienceMs,
);
