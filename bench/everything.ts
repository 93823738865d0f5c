/** Runs the chosen scenarios and measurements one after another, and collects the results. */
import type { Results } from '../src/loadtest/results.js';
import { measureLatency } from './latency.js';
import { machineOf } from './machine.js';
import { type MeasureOptions, measure, sidesOf } from './measure.js';
import { balanced } from './measurements/balanced.js';
import { consumers } from './measurements/consumers.js';
import { messageDrafts } from './measurements/drafts.js';
import { durable } from './measurements/durable.js';
import { idle } from './measurements/idle.js';
import { idleStreams } from './measurements/idle_streams.js';
import { journal } from './measurements/journal.js';
import type { Measurement } from './measurements/measurement.js';
import { memory } from './measurements/memory.js';
import { reactionsCold } from './measurements/reactions_cold.js';
import { roundTrips } from './measurements/round_trips.js';
import { scaling } from './measurements/scaling.js';
import { search } from './measurements/search.js';
import { soak, soak_hot_ttl_ms } from './measurements/soak.js';
import { latency } from './measurements/webhook_latency.js';
import { webhooks } from './measurements/webhooks.js';
import type { Options } from './options.js';
import { type Peer, startPeer } from './peers/telegram_test_api.js';
import { scenarios } from './scenarios/all.js';
import type { Scenario } from './scenarios/scenario.js';
import { type RedisWatch, watchRedis } from './service/redis_watch.js';
import { type Service, startService } from './service/service.js';

export const partitions = 64;

const measurements: readonly Measurement[] = [
  roundTrips,
  idle,
  memory,
  journal,
  reactionsCold,
  webhooks,
  latency,
  balanced,
  durable,
  messageDrafts,
  consumers,
  idleStreams,
  search,
];
const scalingName = 'scaling';

export const names: readonly string[] = [...scenarios, ...measurements]
  .map(({ name }) => name)
  .concat(scalingName);

const of_costs: readonly string[] = ['forwardMessages', 'mix'];

const beside_goals: readonly string[] = [
  'reaction_full',
  'forwardMessages',
  'idle_polls',
  'mix',
  'reactions_cold',
  'balanced',
  'durable',
  'drafts',
  'consumers',
  'idle_streams',
  'search',
  scalingName,
];

export type Found = Pick<Results, 'scenarios' | 'latencies' | 'scaling' | 'findings' | 'soak' | 'machine'> & {
  ended: string;
};

export interface RunOptions extends Options {
  readonly signal: AbortSignal;
  readonly progress: (line: string) => void;
  readonly profileFolder: string | undefined;
}

interface Run {
  readonly service: Service;
  readonly watch: RedisWatch;
  readonly options: RunOptions;
  readonly found: Found;
}

const measuring = ({ service, watch, options }: Run, connections: number): MeasureOptions => ({
  ...{ service, watch, connections },
  tool: options.load,
  rounds: options.rounds,
  seconds: options.seconds,
  warmup_s: options.warmup,
  dir: service.dir,
  signal: options.signal,
  progress: options.progress,
  profile: options.profileFolder === undefined ? undefined : service.profile,
});

async function runScenario(run: Run, scenario: Scenario, peer: Peer | undefined): Promise<void> {
  const { service, watch, options, found } = run;
  options.progress(`${scenario.name}: preparing`);
  const prepared = await scenario.prepare(service, watch, options);
  const sides = sidesOf(prepared, peer?.side(scenario.name));
  const connections = Math.min(options.connections, scenario.connectionsMax ?? options.connections);
  const own = measuring(run, connections);
  const result = await measure(scenario, sides, own);
  found.scenarios.push(result);
  if (options.fixed && scenario.timed)
    found.latencies.push(
      ...(await measureLatency(scenario, sides, result, { ...own, sweep: options.sweep && !options.goals })),
    );
}

async function runChosen(run: Run): Promise<void> {
  const { service, watch, options, found } = run;
  const needed = (name: string) =>
    !options.goals ||
    !beside_goals.includes(name) ||
    (options.costs !== undefined && of_costs.includes(name));
  const wanted = options.only ?? names.filter(needed);
  const began = performance.now();
  const left: string[] = [];
  const peer = options.peers ? await startPeer(service, options.progress) : undefined;
  for (const name of names.filter((each) => wanted.includes(each))) {
    options.signal.throwIfAborted();
    if (performance.now() - began > options.within * 60_000) {
      left.push(name);
      continue;
    }
    const scenario = scenarios.find((each) => each.name === name);
    const measurement = measurements.find((each) => each.name === name);
    if (scenario) await runScenario(run, scenario, peer);
    if (measurement) {
      options.progress(`${name}: counting`);
      found.findings.push(...(await measurement.run(service, watch, options)));
    }
    if (name === scalingName) {
      const { results, findings } = await scaling(service, {
        ...measuring(run, options.connections),
        fronts: options.fronts,
      });
      found.scaling.push(...results);
      found.findings.push(...findings);
    }
  }
  if (left.length > 0) found.ended = `${left.join(', ')} had not started after ${options.within} minutes`;
}

async function runSoak(run: Run): Promise<void> {
  const { service, options, found } = run;
  const { samples, findings } = await soak(service, {
    ...options,
    ...measuring(run, options.connections),
    minutes: options.minutes,
    part: options.part,
  });
  found.soak.push(...samples);
  found.findings.push(...findings);
}

/** Rejects when the run is interrupted, because some waits do not check the signal themselves. */
const interruption = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });

/**
 * Starts a service, runs the chosen scenarios and measurements on it, and stops it. Adds each result to `found`
 * immediately.
 */
export async function runEverything(options: RunOptions, found: Found): Promise<void> {
  const { signal, progress } = options;
  const settings = options.soak ? { HOT_TTL_MS: String(soak_hot_ttl_ms) } : {};
  const service = await startService({
    partitions,
    say: progress,
    signal,
    profile: options.profileFolder,
    settings,
    databases: options.databases,
  });
  try {
    const watch = await watchRedis(service.redisUrl, partitions);
    try {
      Object.assign(found.machine, await machineOf(watch, service.postgresVersion));
      const run: Run = { service, watch, options, found };
      await Promise.race([options.soak ? runSoak(run) : runChosen(run), interruption(signal)]);
    } finally {
      await watch.close();
    }
  } finally {
    progress('stopping');
    await service.stop();
  }
}
