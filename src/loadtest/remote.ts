/** Runs `petrel bench`: puts a bounded load at fixed rates on a running installation and reports the latencies. */
import { writeFileSync } from 'node:fs';
import { version } from '../config/version.js';
import { type FixedRateResult, loadAtRate } from './fixed_rate.js';
import { pageOf } from './page.js';
import { isBotToken, openStage, type RemoteScenario, remoteNames } from './remote_stage.js';
import { type GoalResult, type LatencyResult, type Results, results_version } from './results.js';
import { report } from './table.js';

export interface RemoteOptions {
  readonly url: string;
  readonly token: string;
  readonly chat?: number;
  readonly only?: readonly string[];
  /** The rates in requests per second. They are measured one after another. */
  readonly rates: readonly number[];
  readonly seconds: number;
  readonly connections: number;
  /** The highest allowed p99 of each rate, in ms. */
  readonly p99?: number;
  readonly json?: string;
  readonly html?: string;
}

const rates_ms_max = 5_000;
/** The longest warm-up in seconds. A warm-up also takes at most a quarter of the duration of its load. */
const warmup_s_max = 1;
const failed_share_max = 0.01;

interface Load {
  readonly latency: LatencyResult;
  readonly stop: string;
}

async function loadOnce(
  scenario: RemoteScenario,
  rate: number,
  options: RemoteOptions,
  signal: AbortSignal,
): Promise<Load> {
  const { seconds, connections } = options;
  await scenario.verify();
  const result: FixedRateResult = await loadAtRate(scenario.series, {
    rate,
    seconds,
    connections,
    signal,
    warmup_s: Math.min(warmup_s_max, seconds / 4),
    salt: `${Date.now()}`,
    failedShareMax: failed_share_max,
  });
  const failures = Object.entries(result.failed);
  const failed = failures.reduce((sum, [, count]) => sum + count, 0);
  const latency: LatencyResult = {
    scenario: scenario.name,
    label: 'service',
    role: 'subject',
    share: null,
    offered: rate,
    answered: result.rate,
    failed,
    cpu: {},
    lag_s: 0,
    late_ms: result.late_ms,
    rounds: 1,
    ms: result.latency,
  };
  if (failed > failed_share_max * result.sent) {
    const why = failures.map(([name, count]) => `${count} × ${name}`).join(', ');
    return { latency, stop: `${scenario.name} at ${rate}/s: ${why} of ${result.sent} requests failed` };
  }
  await scenario.verify();
  return { latency, stop: '' };
}

function goalsOf(latencies: readonly LatencyResult[], p99: number | undefined): GoalResult[] {
  return latencies.flatMap(({ scenario, offered, ms, failed }) => {
    const what = `${scenario} at ${offered}/s`;
    const none: GoalResult = {
      proof: '',
      what: `${what}: failed calls`,
      figure: String(failed),
      goal: '0',
      met: failed === 0,
    };
    if (p99 === undefined) return [none];
    const figure = `${ms.p99.toFixed(2)} ms`;
    return [none, { proof: '', what: `${what}: p99`, figure, goal: `≤ ${p99} ms`, met: ms.p99 <= p99 }];
  });
}

/** Reads the rate limits from the server's API document. A load above a rate limit is answered with 429. */
async function ratesAt(url: string): Promise<string> {
  const timeout = AbortSignal.timeout(rates_ms_max);
  try {
    const answer = await fetch(`${url}/openapi.json`, { signal: timeout });
    const { info } = (await answer.json()) as {
      readonly info?: { readonly 'x-rates'?: Record<string, string> };
    };
    const rates = info?.['x-rates'];
    if (rates === undefined) return 'unknown';
    return (
      Object.entries(rates)
        .map(([name, rate]) => `${name}=${rate}`)
        .join(', ') || 'none'
    );
  } catch {
    return 'unknown';
  }
}

/** Runs every load. Returns whether all of them succeeded. Prints and writes the results in any case. */
export async function runRemote(options: RemoteOptions): Promise<boolean> {
  const url = options.url.replace(/\/+$/, '');
  const { token, chat, rates } = options;
  const interrupted = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => interrupted.abort(new Error('interrupted')));
  const say = (line: string) => void process.stderr.write(`${line}\n`);
  const began = performance.now();
  const latencies: LatencyResult[] = [];
  let ended = '';
  const fair_use = await ratesAt(url);
  say(`rate limits of the installation: ${fair_use}`);
  const stage = await openStage({ url, token, chat, rate: Math.max(...rates) });
  try {
    const wanted = options.only ?? remoteNames;
    const scenarios = stage.scenarios.filter(({ name }) => wanted.includes(name));
    for (const scenario of scenarios) {
      for (const rate of ended ? [] : [...rates].sort((a, b) => a - b)) {
        say(`${scenario.name}: ${rate}/s for ${options.seconds} s`);
        const { latency, stop } = await loadOnce(scenario, rate, options, interrupted.signal);
        latencies.push(latency);
        ended = stop;
        if (ended) break;
      }
    }
    if (latencies.length === 0) ended = 'the token allows none of these calls';
  } catch (error) {
    ended = (error as Error).message;
  } finally {
    await stage
      .close()
      .catch((error: Error) => say(`the bot of this run could not be deleted: ${error.message}`));
  }
  const results: Results = {
    schema: 'petrel-bench',
    version: results_version,
    made_at: new Date().toISOString(),
    petrel: version,
    commit: '',
    ended,
    seconds: Math.round((performance.now() - began) / 1_000),
    machine: { installation: new URL(url).host, load_node: process.versions.node },
    settings: {
      token: isBotToken(token) ? "a bot's" : "a person's",
      rates: rates.join(' '),
      connections: options.connections,
      seconds_each: options.seconds,
      fair_use,
    },
    scenarios: [],
    latencies,
    scaling: [],
    findings: [],
    soak: [],
    goals: goalsOf(latencies, options.p99),
  };
  process.stdout.write(`\n${report(results)}`);
  if (options.json !== undefined) writeFileSync(options.json, `${JSON.stringify(results, null, 2)}\n`);
  if (options.html !== undefined) writeFileSync(options.html, pageOf(results));
  return ended === '' && results.goals.every(({ met }) => met !== false);
}
