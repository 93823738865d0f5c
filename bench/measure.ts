/** Measures one scenario: warm-up, then rounds in which the floor and the service take turns. */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from './client.js';
import { type LoadOptions, load } from './load.js';
import { cpuSeconds } from './processes.js';
import type { RedisWatch } from './redis_watch.js';
import type { Prepared, Scenario, Side } from './scenarios.js';

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
  readonly goal: number;
  readonly floor: Round;
  readonly service: Round;
  /** Service's rate as a share of the floor's: the median of the rounds, and each of them. */
  readonly ratio: number;
  readonly ratios: readonly number[];
  /** Floor's CPU time a request as a share of the service's. */
  readonly cpuRatio: number;
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
  const { target, request } = side;
  const newest = await side.verify();
  await drain(options);
  const before = { cpu: cpuSeconds(target.pid), redis: await options.watch.cost() };
  const result = await load(request, { ...options, seconds });
  const after = { cpu: cpuSeconds(target.pid), redis: await options.watch.cost() };
  const lag = await options.watch.journalLength();
  if (scenario.countsMessages) {
    // The tool gives up requests that are under way when its time is over: they may have been applied.
    const made = (await side.verify()) - newest - 3;
    expect(
      made >= result.requests && made <= result.requests + options.connections,
      `${result.requests} calls were acknowledged and ${made} messages made`,
    );
  } else {
    await side.verify();
  }
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
  { floor, service }: Prepared,
  options: MeasureOptions,
): Promise<Measured> {
  const { name, proof, goal } = scenario;
  const play = (side: Side, what: string, seconds: number) => {
    options.progress(`${name}: ${what}, ${side === floor ? 'floor' : 'service'}`);
    return playRound(side, scenario, options, seconds);
  };
  for (const side of [floor, service]) await play(side, 'warm-up', options.warmup_s);
  const rounds: Array<{ readonly floor: Round; readonly service: Round }> = [];
  for (let i = 1; i <= options.rounds; i++) {
    const what = `round ${i} of ${options.rounds}`;
    // Who goes second meets a warmer machine: they take turns in that too.
    if (i % 2 === 1) {
      const first = await play(floor, what, options.seconds);
      rounds.push({ floor: first, service: await play(service, what, options.seconds) });
    } else {
      const first = await play(service, what, options.seconds);
      rounds.push({ service: first, floor: await play(floor, what, options.seconds) });
    }
  }
  if (options.profile) {
    options.profile(service.target.pid);
    await play(service, 'profile', options.seconds);
    options.profile(service.target.pid);
  }
  const ratios = rounds.map((round) => round.service.rate / round.floor.rate);
  return {
    name,
    proof,
    goal,
    floor: middleOf(rounds.map((round) => round.floor)),
    service: middleOf(rounds.map((round) => round.service)),
    ratio: median(ratios),
    ratios,
    cpuRatio: median(rounds.map((round) => round.floor.cpu / round.service.cpu)),
    drained_s: await drain(options),
  };
}
