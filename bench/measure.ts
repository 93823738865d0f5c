/** Measures one scenario: a warm-up, then rounds in which the measured server and its baseline alternate. */
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from '../src/loadtest/client.js';
import type { ScenarioResult, SideResult } from '../src/loadtest/results.js';
import { type LoadOptions, load } from './load/load.js';
import type { Prepared, Scenario, Side } from './scenarios/scenario.js';
import { diskWritesBetween, readDiskWrites } from './service/disk_writes.js';
import { cpuSeconds, cpuSecondsOfEnded, cpuSecondsOfMachine, cpuSecondsOfTree } from './service/processes.js';
import type { RedisWatch } from './service/redis_watch.js';
import type { Service } from './service/service.js';

export interface NamedSide {
  readonly label: string;
  readonly role: SideResult['role'];
  readonly side: Side;
}

interface Round extends Omit<SideResult, 'label' | 'role' | 'rates' | 'taken' | 'busy' | 'cpu' | 'disk'> {
  /** The share of the machine's CPU time that other programs took. */
  readonly taken: number;
  readonly busy: number;
  /** The bytes written to disk per request. */
  readonly disk: Readonly<Record<'redis' | 'postgres', number>>;
  /** The CPU time in µs per request, keyed by process name. */
  readonly cpu: Readonly<Record<string, number>>;
}

export interface MeasureOptions extends Omit<LoadOptions, 'seconds'> {
  readonly service: Service;
  readonly rounds: number;
  readonly seconds: number;
  readonly warmup_s: number;
  readonly watch: RedisWatch;
  readonly progress: (line: string) => void;
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

/** Returns the quantile of `values` at `share`, which is from 0 to 1. NaN if there are no values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** JSON has no NaN. A missing measurement becomes null. */
export const known = (value: number): number | null => (Number.isFinite(value) ? value : null);

export function sidesOf({ base, subject, labels }: Prepared, peers: readonly NamedSide[] = []): NamedSide[] {
  return [
    ...(base ? [{ label: labels[0], role: 'base' as const, side: base }] : []),
    { label: labels[1], role: 'subject', side: subject },
    ...peers,
  ];
}

/**
 * Waits until all changes are in Postgres, so that no round includes work of an earlier round. Returns the waiting time
 * in seconds.
 */
export async function drain({ watch, signal }: Pick<MeasureOptions, 'watch' | 'signal'>): Promise<number> {
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

/** Reads the CPU time of all processes of the run, in seconds. */
export async function readCosts(service: Service, watch: RedisWatch, servers: readonly number[]) {
  return {
    redis: await watch.cost(),
    cpu: {
      server: servers.reduce((sum, pid) => sum + cpuSeconds(pid), 0),
      flush: cpuSeconds(service.parts.flush),
      postgres: cpuSecondsOfTree(service.parts.postgres),
      load: cpuSecondsOfEnded(),
    },
  };
}

export function costsBetween(
  before: Awaited<ReturnType<typeof readCosts>>,
  after: Awaited<ReturnType<typeof readCosts>>,
  requests: number,
) {
  const each = (from: number, to: number) => ((to - from) * 1e6) / requests;
  return {
    server: each(before.cpu.server, after.cpu.server),
    redis: each(before.redis.cpuSeconds, after.redis.cpuSeconds),
    flush: each(before.cpu.flush, after.cpu.flush),
    postgres: each(before.cpu.postgres, after.cpu.postgres),
    load: each(before.cpu.load, after.cpu.load),
  };
}

/** The CPU time of the bench itself, in seconds. */
function ownSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

interface MachineReading extends Awaited<ReturnType<typeof readCosts>> {
  /** The CPU times of the whole machine and of the bench itself, in seconds. */
  readonly machine: number;
  readonly own: number;
  readonly at: number;
}

/** Returns the share of the machine's CPU time that no process of the run used. NaN without /proc. */
export function takenBetween(before: MachineReading, after: MachineReading, cores = cpus().length): number {
  const ofRun = ({ cpu, redis, own }: MachineReading) =>
    cpu.server + cpu.flush + cpu.postgres + cpu.load + redis.cpuSeconds + own;
  const others = after.machine - before.machine - (ofRun(after) - ofRun(before));
  return Math.max(0, others / (cores * ((after.at - before.at) / 1_000)));
}

export async function verified<T>(
  side: Side,
  options: Pick<MeasureOptions, 'watch' | 'signal'>,
  work: () => Promise<T>,
): Promise<T> {
  await side.verify();
  await drain(options);
  const leave = await side.attend?.();
  let result: T;
  try {
    result = await work();
  } finally {
    await leave?.();
  }
  await side.verify();
  return result;
}

async function playRound(
  side: Side,
  scenario: Scenario,
  options: MeasureOptions,
  seconds: number,
): Promise<Round> {
  const { target, series } = side;
  const { watch, connections, service } = options;
  const counted = scenario.versions > 0 && !side.foreign;
  const reading = async () => ({
    ...(await readCosts(service, watch, [target.pid])),
    ...{ machine: cpuSecondsOfMachine(), own: ownSeconds(), at: performance.now() },
    versions: counted ? await watch.versions() : 0,
  });
  return verified(side, options, async () => {
    const written = await readDiskWrites(service, watch);
    const before = await reading();
    const result = await load(series, { ...options, seconds });
    expect(result.requests > 0, `no request was answered in ${seconds} s: use longer turns`);
    const after = await reading();
    const journal = await watch.journalLength();
    if (counted) {
      // The server may have applied more calls than it answered, because the load tool abandons in-flight requests at
      // the end.
      const applied = (after.versions - before.versions) / scenario.versions;
      expect(
        applied >= result.requests && applied <= result.requests + connections,
        `${result.requests} calls were acknowledged and ${applied} applied`,
      );
    }
    const cpu = costsBetween(before, after, result.requests);
    const taken = takenBetween(before, after);
    await drain(options);
    const disk = diskWritesBetween(written, await readDiskWrites(service, watch), result.requests);
    return {
      disk,
      taken,
      rate: result.requests / result.seconds,
      cpu,
      busy: (cpu.server * result.requests) / 1e6 / result.seconds,
      scripts: (after.redis.scripts - before.redis.scripts) / result.requests,
      commands: (after.redis.commands - before.redis.commands) / result.requests,
      p50_ms: result.p50,
      p99_ms: result.p99,
      journal,
    };
  });
}

function resultOf({ label, role }: NamedSide, rounds: readonly Round[]): SideResult {
  const of = (field: Exclude<keyof Round, 'cpu' | 'disk' | 'taken'>) =>
    median(rounds.map((round) => round[field]));
  const [first] = rounds as readonly [Round];
  return {
    label,
    role,
    rate: of('rate'),
    rates: rounds.map(({ rate }) => rate),
    ...(Number.isFinite(first.taken) ? { taken: rounds.map(({ taken }) => taken) } : {}),
    cpu: Object.fromEntries(
      Object.keys(first.cpu).map((name) => [name, known(median(rounds.map(({ cpu }) => cpu[name] ?? 0)))]),
    ),
    disk: {
      redis: median(rounds.map(({ disk }) => disk.redis)),
      postgres: median(rounds.map(({ disk }) => disk.postgres)),
    },
    busy: known(of('busy')),
    scripts: of('scripts'),
    commands: of('commands'),
    p50_ms: of('p50_ms'),
    p99_ms: of('p99_ms'),
    journal: Math.max(...rounds.map(({ journal }) => journal)),
  };
}

function comparison(base: readonly Round[] | undefined, subject: readonly Round[]) {
  if (!base) return { ratio: null, ratios: [], cpu_ratio: null, growth: null };
  const each = (of: (own: Round, other: Round) => number) =>
    subject.map((round, i) => of(round, base[i] as Round));
  const growth = (cost: (round: Round) => number) =>
    known(median(each((own, other) => cost(own) / cost(other))));
  const server = ({ cpu }: Round) => cpu.server ?? 0;
  const redis = ({ cpu }: Round) => cpu.redis ?? 0;
  const ratios = each((own, other) => own.rate / other.rate);
  return {
    ratio: median(ratios),
    ratios,
    cpu_ratio: known(median(each((own, other) => server(other) / server(own)))),
    growth: {
      server: growth(server),
      redis: growth(redis),
      both: growth((round) => server(round) + redis(round)),
    },
  };
}

/** Measures a prepared scenario and its baseline. Throws WrongAnswer as soon as an answer is wrong. */
export async function measure(
  scenario: Scenario,
  sides: readonly NamedSide[],
  options: MeasureOptions,
): Promise<ScenarioResult> {
  const { name, title, proof, goal } = scenario;
  const play = ({ side, label }: NamedSide, what: string, seconds: number) => {
    options.progress(`${name}: ${what}, ${label}`);
    return playRound(side, scenario, options, seconds);
  };
  if (options.warmup_s > 0) for (const each of sides) await play(each, 'warm-up', options.warmup_s);
  const rounds = new Map<NamedSide, Round[]>(sides.map((each) => [each, []]));
  for (let i = 1; i <= options.rounds; i++) {
    // Alternates whether the baseline is measured first or last, because later measurements run on a warmer machine.
    const turns = i % 2 === 1 ? sides : [...sides].reverse();
    for (const each of turns)
      rounds.get(each)?.push(await play(each, `round ${i} of ${options.rounds}`, options.seconds));
  }
  const of = (role: SideResult['role']) => {
    const found = sides.find((each) => each.role === role);
    return found && rounds.get(found);
  };
  const subject = sides.find(({ role }) => role === 'subject') as NamedSide;
  if (options.profile) {
    options.profile(subject.side.target.pid);
    await play(subject, 'profile', options.seconds);
    options.profile(subject.side.target.pid);
  }
  return {
    ...{ name, title, proof, goal },
    connections: options.connections,
    sides: sides.map((each) => resultOf(each, rounds.get(each) as Round[])),
    ...comparison(of('base'), of('subject') as Round[]),
    drained_s: await drain(options),
  };
}
