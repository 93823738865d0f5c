/**
 * Measures `sendMessage` through a front with DURABLE=1, compared with an ordinary front of the same service, in
 * alternating rounds (decision 0055). Durable calls are measured with `appendfsync always` and with `everysec`,
 * ordinary calls only with `always`. All processes share the cores. Other programs on the machine affect the ratio of
 * CPU times less than the ratio of rates.
 */
import { expect, inParallel, makePair } from '../../src/loadtest/client.js';
import type { Finding } from '../../src/loadtest/results.js';
import type { Series } from '../../src/loadtest/series.js';
import { type LoadOptions, load, loadFixed } from '../load/load.js';
import { costsBetween, drain, known, median, readCosts } from '../measure.js';
import { ask } from '../scenarios/scenario.js';
import { type Message, text } from '../service/population.js';
import type { RedisWatch } from '../service/redis_watch.js';
import type { Service, Target } from '../service/service.js';
import type { Measurement } from './measurement.js';

const bots = 8;
const warmup_s = 1;
const rate_goal = 0.7;
const p99_goal_ms = 25;
/** Latencies are measured at this share of the highest rate of durable calls. */
const half = 0.5;

const sides = ['usual', 'durable', 'everysec'] as const;
type Side = (typeof sides)[number];
type DurableSide = Exclude<Side, 'usual'>;
const durableSides = ['durable', 'everysec'] as const satisfies readonly DurableSide[];
/** The Redis setting `appendfsync` for each kind of round. */
const appendfsync = { usual: 'always', durable: 'always', everysec: 'everysec' } as const;
const processes = ['server', 'redis', 'flush', 'postgres'] as const;

interface Turn {
  readonly rate: number;
  readonly p50: number;
  readonly p99: number;
  /** The CPU time in µs per call. */
  readonly cpu: ReturnType<typeof costsBetween>;
  readonly scripts: number;
  readonly commands: number;
}

interface Stage {
  readonly service: Service;
  readonly watch: RedisWatch;
  readonly rows: Series['rows'];
  readonly fronts: Readonly<Record<Side, Target>>;
  readonly load: LoadOptions;
}

async function turn({ service, watch, rows, fronts, load: own }: Stage, side: Side, rate?: number) {
  const target = fronts[side];
  const series: Series = {
    origin: target.baseUrl,
    calls: [{ verb: 'POST', path: '/bot{1}/sendMessage', body: JSON.stringify({ chat_id: '{2}', text }) }],
    rows,
  };
  await drain({ watch, signal: own.signal });
  await watch.client.config('SET', 'appendfsync', appendfsync[side]);
  const reading = async () => ({
    ...(await readCosts(service, watch, [target.pid])),
    versions: await watch.versions(),
  });
  const before = await reading();
  const run = async () => {
    if (rate === undefined) {
      const { requests, seconds, p50, p99 } = await load(series, own);
      return { requests, rate: requests / seconds, p50, p99 };
    }
    const { answered, rate: held, latency } = await loadFixed(series, { ...own, rate, warmup_s });
    return { requests: answered, rate: held, p50: latency.p50, p99: latency.p99 };
  };
  const done = await run();
  await drain({ watch, signal: own.signal });
  const after = await reading();
  const applied = after.versions - before.versions;
  expect(
    applied >= done.requests && applied <= done.requests + own.connections,
    `${done.requests} calls were acknowledged and ${applied} applied`,
  );
  return {
    ...done,
    cpu: costsBetween(before, after, applied),
    scripts: (after.redis.scripts - before.redis.scripts) / applied,
    commands: (after.redis.commands - before.redis.commands) / applied,
  };
}

type Turns = Readonly<Record<Side, Turn[]>>;

async function play(
  stage: Stage,
  rounds: number,
  say: (line: string) => void,
  rates?: Readonly<Record<Side, number>>,
): Promise<Turns> {
  const turns: Turns = { usual: [], durable: [], everysec: [] };
  for (let round = 1; round <= rounds; round++) {
    for (const side of round % 2 === 1 ? sides : [...sides].reverse()) {
      const rate = rates?.[side];
      say(`${side}${rate === undefined ? '' : ` at ${rate} per second`}, round ${round} of ${rounds}`);
      turns[side].push(await turn(stage, side, rate));
    }
  }
  return turns;
}

const sumOf = ({ cpu }: Turn) => processes.reduce((sum, name) => sum + cpu[name], 0);

const ratioOf = (turns: Turns, side: DurableSide, of: (each: Turn) => number): number =>
  median(turns[side].map((each, i) => of(each) / of(turns.usual[i] as Turn)));

function shown(turns: readonly Turn[]): string {
  const of = (field: (each: Turn) => number) => median(turns.map(field));
  const cpu = processes.map((name) => `${name} ${of((each) => each.cpu[name]).toFixed(0)}`).join(', ');
  const p99 = turns.map((each) => each.p99.toFixed(0)).join(', ');
  return `${Math.round(of(({ rate }) => rate)).toLocaleString('en')}/s, µs CPU per call: ${cpu}; ${of(({ scripts }) => scripts).toFixed(2)} scripts, ${of(({ commands }) => commands).toFixed(1)} commands; p50 ${of(({ p50 }) => p50).toFixed(1)} ms, p99 ${p99} ms`;
}

const comparison = (turns: Turns, side: DurableSide): string =>
  `${ratioOf(turns, side, sumOf).toFixed(2)} × the CPU time of all processes (usual ${shown(turns.usual)}; durable ${shown(turns[side])})`;

const whatOf = (side: DurableSide): string => `durable sendMessage, appendfsync ${appendfsync[side]}`;

function rateFinding(turns: Turns, side: DurableSide, connections: number): Finding {
  const ratio = ratioOf(turns, side, ({ rate }) => rate);
  return {
    key: `${side === 'durable' ? 'durable calls' : 'durable calls with everysec'} beside usual calls`,
    proof: '',
    what: `${whatOf(side)}, ${connections} connections: rate compared with usual calls`,
    measured: `${ratio.toFixed(2)} × the rate, ${comparison(turns, side)}`,
    value: known(ratio),
    goal: `≥ ${rate_goal.toFixed(2)} ×`,
    met: Number.isNaN(ratio) ? null : ratio >= rate_goal,
  };
}

function latencyFinding(turns: Turns, side: DurableSide, rate: number): Finding {
  const p99 = median(turns[side].map((each) => each.p99));
  return {
    key: `p99 of ${side === 'durable' ? 'durable calls' : 'durable calls with everysec'}`,
    proof: '',
    what: `${whatOf(side)}, at ${rate.toLocaleString('en')}/s, half of its highest rate: p99`,
    measured: `${p99.toFixed(1)} ms, ${comparison(turns, side)}`,
    value: known(p99),
    goal: `≤ ${p99_goal_ms} ms`,
    met: Number.isNaN(p99) ? null : p99 <= p99_goal_ms,
  };
}

export const durable: Measurement = {
  name: 'durable',
  async run(service, watch, { rounds, seconds, connections, load: tool, progress }): Promise<Finding[]> {
    const { front, adminToken, dir, signal } = service;
    const pairs = await inParallel(bots, bots, (i) => makePair(front.baseUrl, adminToken, `durable_${i}`));
    const safe = await service.startFront({ DURABLE: '1' });
    try {
      service.unpin([safe]);
      const fronts = { usual: front, durable: safe, everysec: safe };
      for (const { bot, user } of pairs)
        for (const side of ['usual', 'durable'] as const) {
          const body = { chat_id: user.id, text };
          const { result } = await ask<{ result: Message }>(fronts[side], `/bot${bot.token}/sendMessage`, {
            body,
          });
          expect(result.text === text, `the ${side} front returned another text`);
        }
      const rows = pairs.map(({ bot, user }) => [bot.token, String(user.id)]);
      const own: LoadOptions = { tool, connections, seconds, dir, signal, anyCore: true };
      const stage: Stage = { service, watch, rows, fronts, load: own };
      const say = (line: string) => progress(`durable: ${line}`);
      await play({ ...stage, load: { ...own, seconds: warmup_s } }, 1, (line) => say(`warm-up, ${line}`));
      for (const pid of [safe.pid, service.parts.flush]) service.profile(pid);
      const fast = await play(stage, rounds, say);
      for (const pid of [safe.pid, service.parts.flush]) service.profile(pid);
      const halfOf = (side: Side) =>
        Math.max(1, Math.round(half * median(fast[side].map((each) => each.rate))));
      const rates = { usual: halfOf('durable'), durable: halfOf('durable'), everysec: halfOf('everysec') };
      const steady = await play(stage, rounds, say, rates);
      return durableSides.flatMap((side) => [
        rateFinding(fast, side, connections),
        latencyFinding(steady, side, rates[side]),
      ]);
    } finally {
      await watch.client.config('SET', 'appendfsync', 'always');
      await safe.stop();
      service.repin();
    }
  },
};
