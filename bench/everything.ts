/** Runs the chosen scenarios and surveys one after another, and collects the results. */
import type { Results } from '../src/loadtest/results.js';
import { measureLatency } from './latency.js';
import { machineOf } from './machine.js';
import { type MeasureOptions, measure, sidesOf } from './measure.js';
import type { Options } from './options.js';
import { type Peer, startPeer } from './peers/telegram_test_api.js';
import { scenarios } from './scenarios/all.js';
import type { Scenario } from './scenarios/scenario.js';
import { type RedisWatch, watchRedis } from './site/redis_watch.js';
import { type Site, startSite } from './site/site.js';
import { balanced } from './surveys/balanced.js';
import { idle } from './surveys/idle.js';
import { journal } from './surveys/journal.js';
import { memory } from './surveys/memory.js';
import { reactionsCold } from './surveys/reactions_cold.js';
import { scaling } from './surveys/scaling.js';
import { soak, soak_hot_ttl_ms } from './surveys/soak.js';
import type { Survey } from './surveys/survey.js';
import { trips } from './surveys/trips.js';
import { latency } from './surveys/webhook_latency.js';
import { webhooks } from './surveys/webhooks.js';

export const partitions = 64;

const surveys: readonly Survey[] = [trips, idle, memory, journal, reactionsCold, webhooks, latency, balanced];
const scalingName = 'scaling';

export const names: readonly string[] = [...scenarios, ...surveys]
  .map(({ name }) => name)
  .concat(scalingName);

/** Scenarios that only the capacity model needs. */
const of_costs: readonly string[] = ['forwardMessages', 'mix'];

/** Scenarios that the goals do not need. */
const beside_goals: readonly string[] = [
  'reaction_full',
  'forwardMessages',
  'idle_polls',
  'mix',
  'reactions_cold',
  'balanced',
  scalingName,
];

export type Found = Pick<Results, 'scenarios' | 'latencies' | 'scaling' | 'findings' | 'soak' | 'machine'> & {
  ended: string;
};

export interface RunOptions extends Options {
  readonly signal: AbortSignal;
  readonly progress: (line: string) => void;
  /** Folder for CPU profiles. */
  readonly profileFolder: string | undefined;
}

interface Run {
  readonly site: Site;
  readonly watch: RedisWatch;
  readonly options: RunOptions;
  readonly found: Found;
}

const measuring = ({ site, watch, options }: Run, connections: number): MeasureOptions => ({
  ...{ site, watch, connections },
  tool: options.load,
  rounds: options.rounds,
  seconds: options.seconds,
  warmup_s: options.warmup,
  dir: site.dir,
  signal: options.signal,
  progress: options.progress,
  profile: options.profileFolder === undefined ? undefined : site.profile,
});

async function runScenario(run: Run, scenario: Scenario, peer: Peer | undefined): Promise<void> {
  const { site, watch, options, found } = run;
  options.progress(`${scenario.name}: preparing`);
  const prepared = await scenario.prepare(site, watch, options);
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

/** Runs the chosen names in order. Names that would start too late are skipped, and the results say so. */
async function runChosen(run: Run): Promise<void> {
  const { site, watch, options, found } = run;
  const needed = (name: string) =>
    !options.goals ||
    !beside_goals.includes(name) ||
    (options.costs !== undefined && of_costs.includes(name));
  const wanted = options.only ?? names.filter(needed);
  const began = performance.now();
  const left: string[] = [];
  const peer = options.peers ? await startPeer(site, options.progress) : undefined;
  for (const name of names.filter((each) => wanted.includes(each))) {
    options.signal.throwIfAborted();
    if (performance.now() - began > options.within * 60_000) {
      left.push(name);
      continue;
    }
    const scenario = scenarios.find((each) => each.name === name);
    const survey = surveys.find((each) => each.name === name);
    if (scenario) await runScenario(run, scenario, peer);
    if (survey) {
      options.progress(`${name}: counting`);
      found.findings.push(...(await survey.run(site, watch, options)));
    }
    if (name === scalingName) {
      const { results, findings } = await scaling(site, {
        ...measuring(run, options.connections),
        fronts: options.fronts,
      });
      found.scaling.push(...results);
      found.findings.push(...findings);
    }
  }
  if (left.length > 0) found.ended = `${left.join(', ')} would have started after ${options.within} minutes`;
}

async function runSoak(run: Run): Promise<void> {
  const { site, options, found } = run;
  const { samples, findings } = await soak(site, {
    ...options,
    ...measuring(run, options.connections),
    minutes: options.minutes,
    part: options.part,
  });
  found.soak.push(...samples);
  found.findings.push(...findings);
}

/** Rejects when the run is interrupted, because not every wait checks the signal. */
const interruption = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });

/** Starts a service, runs the chosen names on it and stops it. Adds results to `found` as they arrive. */
export async function runEverything(options: RunOptions, found: Found): Promise<void> {
  const { signal, progress } = options;
  const settings = options.soak ? { HOT_TTL_MS: String(soak_hot_ttl_ms) } : {};
  const site = await startSite({
    partitions,
    say: progress,
    signal,
    profile: options.profileFolder,
    settings,
  });
  try {
    const watch = await watchRedis(site.redisUrl, partitions);
    try {
      Object.assign(found.machine, await machineOf(watch, site.postgresVersion));
      const run: Run = { site, watch, options, found };
      await Promise.race([options.soak ? runSoak(run) : runChosen(run), interruption(signal)]);
    } finally {
      await watch.close();
    }
  } finally {
    progress('stopping');
    await site.stop();
  }
}
