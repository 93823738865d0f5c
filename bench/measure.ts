/** Measures one scenario: warm-up, then rounds in which its two sides take turns. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from '../src/bench/client.js';
import { type LoadOptions, load } from './load/load.js';
import type { Goal, Prepared, Scenario, Side } from './scenarios/scenario.js';
import { cpuSeconds } from './site/processes.js';
import type { RedisWatch } from './site/redis_watch.js';

/** One server in one round. Times are in microseconds a request unless the name says otherwise. */
export interface Round {
  readonly rate: number;
  readonly cpu: number;
  /** Share of a core that the server used: below 0.9 something else was the limit. */
  readonly busy: number;
  readonly redisCpu: number;
  readonly scripts: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  /** Entries that waited for Postgres when the round ended. */
  readonly lag: number;
}

export interface Measured {
  readonly name: string;
  readonly proof: string;
  readonly goal: Goal;
  readonly labels: Prepared['labels'];
  readonly connections: number;
  readonly base: Round;
  readonly subject: Round;
  /** Subject's rate as a share of the base's: the median of the rounds, and each of them. */
  readonly ratio: number;
  readonly ratios: readonly number[];
  /** Base's CPU time a request as a share of the subject's. */
  readonly cpuRatio: number;
  /** CPU time for a request of the subject, as a multiple of the base's: of server, of Redis, of both together. */
  readonly growth: { readonly server: number; readonly redis: number; readonly both: number };
  /** Seconds until the journal was empty after the last round. */
  readonly drained_s: number;
}

export interface MeasureOptions extends Omit<LoadOptions, 'seconds'> {
  readonly rounds: number;
  readonly seconds: number;
  readonly warmup_s: number;
  readonly watch: RedisWatch;
  readonly progress: (line: string) => void;
  /** Begins or ends a CPU profile of the front. */
  readonly profile: ((pid: number) => void) | undefined;
}

const drain_s_max = 120;

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[middle] as number)
    : ((sorted[middle - 1] as number) + (sorted[middle] as number)) / 2;
}

/** Waits until Postgres has everything, so that no round carries the load of the one before. Returns the seconds. */
async function drain({ watch, signal }: MeasureOptions): Promise<number> {
  const since = performance.now();
  for (;;) {
    signal.throwIfAborted();
    const seconds = (performance.now() - since) / 1000;
    const left = await watch.journalLength();
    if (left === 0) return seconds;
    expect(seconds < drain_s_max, `${left} journal entries are left after ${drain_s_max} s`);
    await sleep(20);
  }
}

async function playRound(
  side: Side,
  scenario: Scenario,
  options: MeasureOptions,
  seconds: number,
): Promise<Round> {
  const { target, series } = side;
  const { watch, connections } = options;
  const reading = async () => ({
    cpu: cpuSeconds(target.pid),
    redis: await watch.cost(),
    versions: scenario.versions === 0 ? 0 : await watch.versions(),
  });
  await side.verify();
  await drain(options);
  const before = await reading();
  const result = await load(series, { ...options, seconds });
  const after = await reading();
  const lag = await watch.journalLength();
  if (scenario.versions > 0) {
    // The tool gives up requests that are under way when its time is over: they may have been applied.
    const applied = (after.versions - before.versions) / scenario.versions;
    expect(
      applied >= result.requests && applied <= result.requests + connections,
      `${result.requests} calls were acknowledged and ${applied} applied`,
    );
  }
  await side.verify();
  const each = 1e6 / result.requests;
  return {
    rate: result.requests / result.seconds,
    cpu: (after.cpu - before.cpu) * each,
    busy: (after.cpu - before.cpu) / result.seconds,
    redisCpu: (after.redis.cpuSeconds - before.redis.cpuSeconds) * each,
    scripts: (after.redis.scripts - before.redis.scripts) / result.requests,
    p50_ms: result.p50,
    p99_ms: result.p99,
    lag,
  };
}

function middleOf(rounds: readonly Round[]): Round {
  const of = (field: keyof Round) => median(rounds.map((round) => round[field]));
  return {
    rate: of('rate'),
    cpu: of('cpu'),
    busy: of('busy'),
    redisCpu: of('redisCpu'),
    scripts: of('scripts'),
    p50_ms: of('p50_ms'),
    p99_ms: of('p99_ms'),
    lag: Math.max(...rounds.map(({ lag }) => lag)),
  };
}

/** Runs a prepared scenario. Throws WrongAnswer as soon as an answer is wrong. */
export async function measure(
  scenario: Scenario,
  { base, subject, labels }: Prepared,
  options: MeasureOptions,
): Promise<Measured> {
  const { name, proof, goal } = scenario;
  const play = (side: Side, what: string, seconds: number) => {
    options.progress(`${name}: ${what}, ${labels[side === base ? 0 : 1]}`);
    return playRound(side, scenario, options, seconds);
  };
  const warmed = options.warmup_s > 0 ? [base, subject] : [];
  for (const side of warmed) await play(side, 'warm-up', options.warmup_s);
  const rounds: Array<{ readonly base: Round; readonly subject: Round }> = [];
  for (let i = 1; i <= options.rounds; i++) {
    const what = `round ${i} of ${options.rounds}`;
    // Who goes second meets a warmer machine: they take turns in that too.
    if (i % 2 === 1) {
      const first = await play(base, what, options.seconds);
      rounds.push({ base: first, subject: await play(subject, what, options.seconds) });
    } else {
      const first = await play(subject, what, options.seconds);
      rounds.push({ subject: first, base: await play(base, what, options.seconds) });
    }
  }
  if (options.profile) {
    options.profile(subject.target.pid);
    await play(subject, 'profile', options.seconds);
    options.profile(subject.target.pid);
  }
  const ratios = rounds.map((round) => round.subject.rate / round.base.rate);
  const growth = (cost: (round: Round) => number) =>
    median(rounds.map((round) => cost(round.subject) / cost(round.base)));
  return {
    name,
    proof,
    goal,
    labels,
    connections: options.connections,
    base: middleOf(rounds.map((round) => round.base)),
    subject: middleOf(rounds.map((round) => round.subject)),
    ratio: median(ratios),
    ratios,
    cpuRatio: median(rounds.map((round) => round.base.cpu / round.subject.cpu)),
    growth: {
      server: growth(({ cpu }) => cpu),
      redis: growth(({ redisCpu }) => redisCpu),
      both: growth(({ cpu, redisCpu }) => cpu + redisCpu),
    },
    drained_s: await drain(options),
  };
}
