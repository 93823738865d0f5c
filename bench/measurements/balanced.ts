/**
 * Measures the CPU time per request over one, two and three fronts behind a load balancer on one machine. The goal: at
 * a fixed rate per front, the cost per request does not grow with the number of fronts. The highest rate is shown
 * without a goal, because fronts that share cores then handle fewer requests per wake-up and each request costs more.
 * Only a machine with more cores can show that the highest rate grows with the number of fronts.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, makePair, type Pair } from '../../src/loadtest/client.js';
import type { Finding } from '../../src/loadtest/results.js';
import { once, type Series } from '../../src/loadtest/series.js';
import { held_least } from '../goals.js';
import { type LoadOptions, load, loadFixed } from '../load/load.js';
import { drain, known, median } from '../measure.js';
import { ask } from '../scenarios/scenario.js';
import { type BalancerKind, findProgram, type RunningBalancer, startBalancer } from '../service/balancer.js';
import { makeCertificate } from '../service/certificate.js';
import { text } from '../service/population.js';
import { cpuSeconds, cpuSecondsOfTree } from '../service/processes.js';
import type { RedisWatch } from '../service/redis_watch.js';
import type { Service, Target } from '../service/service.js';
import type { Measurement, MeasurementOptions } from './measurement.js';

const warmup_s = 1;
/** The maximum cost of a request with several fronts, as a multiple of the cost with one front. */
const growth_max = 1.1;
/** The largest number of fronts. The proxy configurations contain three. */
const fronts_max = 3;

const shipped = fileURLToPath(new URL('../../../infra/proxy', import.meta.url));

interface Call {
  readonly name: 'sendMessage' | 'getMe';
  readonly versions: number;
  /** The requests per second for each front. Two cores can run three fronts at this rate. */
  readonly rate: number;
  series(origin: string, pair: Pair): Series;
}

const calls: readonly Call[] = [
  {
    name: 'sendMessage',
    versions: 1,
    rate: 300,
    series: (origin, { bot, user }) => ({
      origin,
      calls: [
        {
          verb: 'POST',
          path: `/bot${bot.token}/sendMessage`,
          body: JSON.stringify({ chat_id: user.id, text }),
        },
      ],
      rows: once,
    }),
  },
  {
    name: 'getMe',
    versions: 0,
    rate: 1_000,
    series: (origin, { bot }) => ({
      origin,
      calls: [{ verb: 'GET', path: `/bot${bot.token}/getMe` }],
      rows: once,
    }),
  },
];

interface Costs {
  readonly fronts: number;
  readonly redis: number;
  readonly balancer: number;
}

interface Turn extends Costs {
  readonly rate: number;
  /** The CPU time of the least and of the most loaded front, as shares of the CPU time of all fronts. */
  readonly shares: readonly [least: number, most: number];
}

interface Stage {
  readonly watch: RedisWatch;
  readonly load: LoadOptions;
  readonly balancer: RunningBalancer;
  readonly ca: string;
  readonly fronts: readonly Target[];
}

type Pace = 'steady' | 'fast';
const paces: readonly Pace[] = ['steady', 'fast'];

async function run(pace: Pace, call: Call, pair: Pair, { load: own, balancer, ca, fronts }: Stage) {
  const series = call.series(balancer.url, pair);
  if (pace === 'fast') return load(series, own);
  const rate = call.rate * fronts.length;
  const done = await loadFixed(series, { ...own, rate, ca });
  return { requests: done.answered, seconds: done.answered / done.rate };
}

async function turn(pace: Pace, call: Call, pair: Pair, stage: Stage): Promise<Turn> {
  const { watch, load: own, balancer, fronts } = stage;
  await drain({ watch, signal: own.signal });
  const reading = async () => ({
    redis: (await watch.cost()).cpuSeconds,
    balancer: cpuSecondsOfTree(balancer.pid),
    each: fronts.map(({ pid }) => cpuSeconds(pid)),
    versions: await watch.versions(),
  });
  const before = await reading();
  const { requests, seconds } = await run(pace, call, pair, stage);
  const after = await reading();
  const applied = after.versions - before.versions;
  const least = requests * call.versions;
  expect(
    requests > 0 && applied >= least && applied <= least + own.connections * call.versions,
    `${requests} calls were acknowledged and ${applied} changes applied`,
  );
  const spent = after.each.map((value, i) => value - (before.each[i] as number));
  const sum = spent.reduce((a, b) => a + b, 0);
  const a_request = (value: number) => (value * 1e6) / requests;
  return {
    rate: requests / seconds,
    fronts: a_request(sum),
    redis: a_request(after.redis - before.redis),
    balancer: a_request(after.balancer - before.balancer),
    shares: [Math.min(...spent) / sum, Math.max(...spent) / sum],
  };
}

function findingOf(kind: BalancerKind, call: Call, pace: Pace, turns: readonly (readonly Turn[])[]): Finding {
  const of = (each: readonly Turn[], field: keyof Costs | 'rate') =>
    Math.round(median(each.map((one) => one[field])));
  const growths = turns
    .slice(1)
    .map((each) => median(each.map(({ fronts }, round) => fronts / (turns[0]?.[round]?.fronts ?? 0))));
  const growth = Math.max(...growths);
  const shown = turns.map((each, i) => {
    const [least, most] = [0, 1].map((at) =>
      Math.round(median(each.map(({ shares }) => shares[at] ?? 0)) * 100),
    );
    return `${i + 1}: ${of(each, 'fronts')} µs, Redis ${of(each, 'redis')}, ${kind} ${of(each, 'balancer')}, ${of(each, 'rate').toLocaleString('en')}/s${i === 0 ? '' : `, ${least} to ${most} % each`}`;
  });
  const by = growths.map((each) => each.toFixed(2)).join(' and ');
  const steady = pace === 'steady';
  // On a busy machine, the fronts may not have had equal traffic, so the bench does not judge the balance.
  const held = turns.every((each, i) => of(each, 'rate') >= held_least * call.rate * (i + 1));
  const how = steady ? `${call.rate.toLocaleString('en')} per second each` : 'at full speed';
  return {
    key: `fronts behind ${kind}, ${call.name}, ${pace}`,
    proof: '',
    what: `${call.name} over 1 to ${turns.length} fronts behind ${kind}, ${how}: CPU time of all fronts per request`,
    measured: `${by} × that of one front (${shown.join('; ')}; ${turns[0]?.length} rounds${steady && !held ? '; not all of it was held: measure on a quieter machine' : ''})`,
    value: known(growth),
    goal: steady ? `≤ ${growth_max.toFixed(2)} ×` : '',
    met: !steady || !held || Number.isNaN(growth) ? null : growth <= growth_max,
  };
}

/**
 * Measures each call over one front, two fronts, and so on. Every second round runs in reverse order, from the largest
 * number of fronts down to one.
 */
async function measureBehind(
  kind: BalancerKind,
  stages: readonly Stage[],
  pair: Pair,
  { rounds, seconds, progress }: MeasurementOptions,
): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const [call, pace] of calls.flatMap((each) => paces.map((how) => [each, how] as const))) {
    const turns = stages.map((): Turn[] => []);
    for (let round = 0; round <= rounds; round++) {
      const order = stages.map((_, i) => (round % 2 === 0 ? i : stages.length - 1 - i));
      for (const i of order) {
        const what = round === 0 ? 'warm-up' : `round ${round} of ${rounds}`;
        progress(`${call.name} behind ${kind}, ${pace}: ${what}, ${i + 1} fronts`);
        const stage = stages[i] as Stage;
        const own = { ...stage.load, seconds: round === 0 ? warmup_s : seconds };
        const done = await turn(pace, call, pair, { ...stage, load: own });
        if (round > 0) turns[i]?.push(done);
      }
    }
    findings.push(findingOf(kind, call, pace, turns));
  }
  return findings;
}

const absent = (kind: BalancerKind): Finding => ({
  ...{ key: `fronts behind ${kind}`, proof: '', what: `fronts behind ${kind}`, goal: '' },
  ...{ measured: `not measured: ${kind} is not installed`, value: null, met: null },
});

async function behind(
  kind: BalancerKind,
  service: Service,
  watch: RedisWatch,
  fronts: readonly Target[],
  options: MeasurementOptions,
  pair: Pair,
): Promise<Finding[]> {
  const folder = join(service.dir, kind);
  mkdirSync(folder);
  const pem = join(folder, 'own.pem');
  const { cert, key } = makeCertificate();
  writeFileSync(pem, `${cert}\n${key}\n`, { mode: 0o600 });
  const { seconds, load: tool } = options;
  const { dir, signal } = service;
  const each = Math.max(1, Math.floor(options.connections / fronts.length));
  const stages: Stage[] = [];
  try {
    for (let count = 1; count <= fronts.length; count++) {
      const some = fronts.slice(0, count);
      const files = join(folder, String(count));
      mkdirSync(files);
      const ports = some.map(({ baseUrl }) => Number(new URL(baseUrl).port));
      const balancer = await startBalancer(kind, { shipped, dir: files, pem, fronts: ports });
      const load: LoadOptions = { tool, connections: each * count, seconds, dir, signal, anyCore: true };
      stages.push({ watch, load, balancer, ca: cert, fronts: some });
    }
    return await measureBehind(kind, stages, pair, options);
  } finally {
    for (const { balancer } of stages) await balancer.stop();
  }
}

export const balanced: Measurement = {
  name: 'balanced',
  async run(service, watch, options) {
    const pair = await makePair(service.front.baseUrl, service.adminToken, 'balanced');
    const started: Array<Awaited<ReturnType<Service['startFront']>>> = [];
    try {
      // Starts fronts that trust the load balancer's headers.
      while (started.length < Math.min(options.fronts, fronts_max))
        started.push(await service.startFront({ TRUSTED_PROXIES: '127.0.0.1/32' }));
      service.unpin(started);
      for (const front of started) await ask(front, `/bot${pair.bot.token}/getMe`);
      const findings: Finding[] = [];
      for (const kind of options.balancers)
        findings.push(
          ...(findProgram(kind) === undefined
            ? [absent(kind)]
            : await behind(kind, service, watch, started, options, pair)),
        );
      return findings;
    } finally {
      for (const front of started) await front.stop();
      service.repin();
    }
  },
};
