/**
 * Measures what idle update streams and idle long polls cost a front and Redis. The clients are divided between several
 * fronts, because a process may open only a limited number of files.
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../src/dev/processes.js';
import { expect } from '../../src/loadtest/client.js';
import type { Finding } from '../../src/loadtest/results.js';
import { known } from '../measure.js';
import { collectGarbage } from '../service/inspector.js';
import { makeManyBots, makePeople, type Person } from '../service/population.js';
import { cpuSeconds, otherCore, residentBytes } from '../service/processes.js';
import type { Program, Service, Target } from '../service/service.js';
import type { IdleTask, IdleWord } from './idle_clients.js';
import type { Measurement } from './measurement.js';

const clients_max = 100_000;
/**
 * How many consumers are measured. Redis renews each consumer's lease every second. With more consumers, the renewals
 * would dominate the result.
 */
const consumers = 20_000;
/**
 * How many clients connect to each front. The number is below the usual limit of 20,000 open files per process, and
 * below the number of ephemeral ports of one address.
 */
const clients_per_front = 16_700;
const consumers_per_bot = 4;
const poll_s = 50;
const settle_s = 10;
const measured_s = 60;
const cpu_goal_us = 2.5;
const bytes_goal = 12 * 1_024;
const kib = (bytes: number) => `${(bytes / 1_024).toFixed(1)} KB`;

interface Kind {
  readonly key: string;
  readonly clients: number;
  readonly what: string;
  readonly repeats: boolean;
  readonly pathOf: (tokens: readonly string[], i: number) => string;
}

const kinds: readonly Kind[] = [
  {
    key: 'idle streams without consumers',
    clients: clients_max,
    what: 'idle streams without consumers',
    repeats: false,
    pathOf: (tokens, i) => `/bot${tokens[i]}/streamUpdates`,
  },
  {
    key: `idle streams of ${consumers_per_bot} consumers per bot`,
    clients: consumers,
    what: `idle streams of ${consumers_per_bot} consumers per bot`,
    repeats: false,
    pathOf: (tokens, i) =>
      `/bot${tokens[Math.floor(i / consumers_per_bot)]}/streamUpdates?consumer=c${i % consumers_per_bot}`,
  },
  {
    key: 'idle polls',
    clients: clients_max,
    what: `idle polls of ${poll_s} s`,
    repeats: true,
    pathOf: (tokens, i) => `/bot${tokens[i]}/getUpdates?timeout=${poll_s}`,
  },
];

/** A front, with the port of its inspector. */
type Front = Target & { readonly inspector: number; stop(): Promise<void> };

const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

/** Returns the idle CPU time of all fronts and of Redis, in µs per second. */
async function idleCpu({ parts, signal }: Service, fronts: readonly Target[]) {
  const ofFronts = () => sum(fronts.map(({ pid }) => cpuSeconds(pid)));
  await sleep(settle_s * 1_000, undefined, { signal });
  const [began, front, redis] = [performance.now(), ofFronts(), cpuSeconds(parts.redis)];
  await sleep(measured_s * 1_000, undefined, { signal });
  const seconds = (performance.now() - began) / 1_000;
  return {
    front: ((ofFronts() - front) * 1e6) / seconds,
    redis: ((cpuSeconds(parts.redis) - redis) * 1e6) / seconds,
  };
}

async function expectAllOpen(programs: readonly Program<IdleWord>[]): Promise<void> {
  for (const { child } of programs) {
    const answer = once(child, 'message') as Promise<[IdleWord]>;
    child.send('state');
    const [{ failed }] = await answer;
    expect(failed === 0, `${failed} idle clients were disconnected`);
  }
}

/**
 * Collects the garbage of the fronts. Returns their memory in bytes before (`all`) and after the collection (`live`).
 */
async function memoryOf(fronts: readonly Front[]): Promise<{ readonly all: number; readonly live: number }> {
  const resident = () => sum(fronts.map(({ pid }) => residentBytes(pid)));
  const all = resident();
  for (const { inspector } of fronts) await collectGarbage(inspector);
  return { all, live: resident() };
}

async function startFronts(service: Service, count: number): Promise<Front[]> {
  const fronts: Front[] = [];
  while (fronts.length < count) {
    const inspector = await freePort();
    const front = await service.startFront({
      NODE_OPTIONS: `--inspect=127.0.0.1:${inspector} --inspect-publish-uid=http`,
    });
    fronts.push({ ...front, inspector });
  }
  return fronts;
}

/**
 * Measures one kind of client on newly started fronts. Older fronts could reuse the memory of an earlier measurement.
 */
async function measureKind(service: Service, tokens: readonly string[], { clients, repeats, pathOf }: Kind) {
  const paths = Array.from({ length: clients }, (_, i) => pathOf(tokens, i));
  const fronts = await startFronts(service, Math.ceil(clients / clients_per_front));
  const idle = await idleCpu(service, fronts);
  const before = await memoryOf(fronts);
  const programs: Program<IdleWord>[] = [];
  try {
    for (const [i, { baseUrl }] of fronts.entries()) {
      const own = paths.slice(i * clients_per_front, (i + 1) * clients_per_front);
      const task: IdleTask = { port: Number(new URL(baseUrl).port), paths: own, repeats };
      programs.push(await service.startProgram<IdleWord>('measurements/idle_clients', task, otherCore));
    }
    const cpu = await idleCpu(service, fronts);
    const memory = await memoryOf(fronts);
    await expectAllOpen(programs);
    return {
      front: (cpu.front - idle.front) / clients,
      redis: (cpu.redis - idle.redis) / clients,
      all: (memory.all - before.live) / clients,
      live: (memory.live - before.live) / clients,
    };
  } finally {
    for (const { stop } of [...programs, ...fronts]) await stop();
  }
}

export const idleStreams: Measurement = {
  name: 'idle_streams',
  async run(service, _, { progress }): Promise<Finding[]> {
    const [owner] = (await makePeople(service, 'idle_streams', 1)) as [Person];
    const tokens = (await makeManyBots(service, owner, clients_max)).map(({ token }) => token);
    const findings: Finding[] = [];
    for (const kind of kinds) {
      progress(kind.what);
      const { front, redis, all, live } = await measureKind(service, tokens, kind);
      findings.push({
        key: kind.key,
        proof: '',
        what: `each of ${kind.clients.toLocaleString('en')} ${kind.what}, over ${measured_s} s`,
        measured: `${front.toFixed(1)} µs CPU of the front per second, ${redis.toFixed(1)} of Redis, ${kib(live)}, with garbage ${kib(all)}`,
        value: known(front),
        goal: `≤ ${cpu_goal_us} µs/s, ≤ ${bytes_goal / 1_024} KB`,
        met: Number.isNaN(front) ? null : front <= cpu_goal_us && live <= bytes_goal,
      });
    }
    return findings;
  },
};
