/**
 * Runs the mix of calls for a long time at a share of its highest rate, while bots and chats are created and deleted. A
 * short HOT_TTL_MS makes Redis expire data early, as it would in a run of days. Samples the memory of every process,
 * the size of the Redis data, the journal and the errors.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { call, makePair } from '../../src/loadtest/client.js';
import type { Finding, SoakSample } from '../../src/loadtest/results.js';
import { type LoadOptions, load, loadFixed } from '../load/load.js';
import { drain, known, median } from '../measure.js';
import { mix } from '../scenarios/mix.js';
import type { Sizes } from '../scenarios/scenario.js';
import { text } from '../service/population.js';
import { residentBytes } from '../service/processes.js';
import type { RedisWatch } from '../service/redis_watch.js';
import type { Service } from '../service/service.js';

/** The HOT_TTL_MS of the soak, in ms. It is the smallest allowed value. */
export const soak_hot_ttl_ms = 60_000;
/** How long the soak measures its highest rate, in seconds, and how long the load runs before that. */
const highest_s = 10;
const warmup_s = 2;
const slice_s_max = 30;
const slices_min = 12;
/** The share of the soak that is a warm-up. The remaining time has two halves, and their results must be similar. */
const warm = 1 / 3;
/**
 * How much the memory of a process may grow from the first half of the measurement to the second half, as a ratio and
 * in bytes. Some growth is allowed, because garbage is collected irregularly.
 */
const grown_max = 1.1;
const grown_bytes_max = 24 * 2 ** 20;
/** The maximum length of the journal: as many entries as the load writes in this time, in seconds. */
const journal_s_max = 5;

export interface SoakOptions extends LoadOptions, Sizes {
  readonly minutes: number;
  readonly part: number;
  readonly watch: RedisWatch;
  readonly progress: (line: string) => void;
}

/**
 * Repeatedly creates a bot with an owner and a chat, sends a message and deletes the bot. Returns a function that stops
 * this loop.
 */
function churn({ front, adminToken }: Service, progress: (line: string) => void): () => Promise<number> {
  let made = 0;
  let over = false;
  let fault: unknown;
  const work = async () => {
    while (!over) {
      const pair = await makePair(front.baseUrl, adminToken, `churn_${made++}`);
      await call(`${front.baseUrl}/bot${pair.bot.token}/sendMessage`, {
        body: { chat_id: pair.user.id, text },
      });
      await call(`${front.baseUrl}/api/me/bots/${pair.bot.id}`, { verb: 'DELETE', token: pair.user.token });
      await sleep(50);
    }
  };
  const done = work().catch((error) => {
    fault = error;
    progress(`soak: creating bots failed: ${(error as Error).message}`);
  });
  return async () => {
    over = true;
    await done;
    if (fault) throw fault;
    return made;
  };
}

function findingsOf(samples: readonly SoakSample[], rate: number, made: number): Finding[] {
  const after = samples.slice(Math.floor(samples.length * warm));
  const [first, last] = [after.slice(0, after.length >> 1), after.slice(after.length >> 1)];
  const minutes = ((samples.at(-1)?.at_s ?? 0) / 60).toFixed(1);
  const flat = (what: string, of: (sample: SoakSample) => number): Finding => {
    const [before, now] = [median(first.map(of)), median(last.map(of))];
    const megabytes = (bytes: number) => (bytes / 2 ** 20).toFixed(1);
    return {
      key: `soak ${what}`,
      proof: '',
      what: `soak of ${minutes} minutes at ${Math.round(rate).toLocaleString('en')}/s: ${what}`,
      measured: `${megabytes(before)} MB in the first half after the warm-up, ${megabytes(now)} MB in the second`,
      value: known(now / before),
      goal: `≤ ${grown_max} × or ${grown_bytes_max / 2 ** 20} MB more`,
      met: now <= before * grown_max || now - before <= grown_bytes_max,
    };
  };
  const journal = Math.max(...samples.map((sample) => sample.journal));
  const errors = samples.reduce((sum, sample) => sum + sample.errors, 0);
  return [
    ...Object.keys(samples[0]?.resident ?? {}).map((name) =>
      flat(`memory of ${name}`, ({ resident }) => resident[name] ?? 0),
    ),
    flat('data of Redis', ({ redis_data }) => redis_data),
    {
      key: 'soak journal',
      proof: '',
      what: `soak: maximum of entries waiting for Postgres; ${made} bots with chats were created and deleted`,
      measured: journal.toLocaleString('en'),
      value: journal,
      goal: `≤ entries written in ${journal_s_max} s`,
      met: journal <= rate * journal_s_max,
    },
    {
      key: 'soak errors',
      proof: '',
      what: 'soak: failed calls',
      measured: String(errors),
      value: errors,
      goal: '0',
      met: errors === 0,
    },
  ];
}

export async function soak(
  service: Service,
  options: SoakOptions,
): Promise<{ readonly samples: SoakSample[]; readonly findings: Finding[] }> {
  const { watch, progress, minutes, part } = options;
  const { subject } = await mix.prepare(service, watch, options);
  const { series } = subject;
  progress('soak: warm-up');
  await load(series, { ...options, seconds: warmup_s });
  await drain(options);
  progress('soak: measuring the highest rate');
  const found = await load(series, { ...options, seconds: highest_s });
  await drain(options);
  const highest = found.requests / found.seconds;
  progress(`soak: the highest rate is ${Math.round(highest)}/s`);
  const rate = Math.max(1, Math.round(highest * part));
  const total_s = minutes * 60;
  const seconds = Math.min(slice_s_max, Math.max(2, Math.floor(total_s / slices_min)));
  const samples: SoakSample[] = [];
  const began = performance.now();
  const elapsed = () => (performance.now() - began) / 1_000;
  const end = churn(service, progress);
  try {
    while (elapsed() < total_s) {
      // Waits, because a message can be edited only once a second. The next load begins with messages that the last
      // load may have edited at its end.
      await sleep(1_100, undefined, { signal: service.signal });
      await subject.verify();
      const result = await loadFixed(series, { ...options, rate, seconds, warmup_s, anyCore: true });
      const { front, parts } = service;
      const journal = await watch.journalLength();
      const failed = Object.values(result.failed).reduce((a, b) => a + b, 0);
      samples.push({
        at_s: elapsed(),
        rate: result.rate,
        resident: {
          front: residentBytes(front.pid),
          flusher: residentBytes(parts.flush),
          Redis: residentBytes(parts.redis),
          Postgres: residentBytes(parts.postgres),
        },
        redis_data: await watch.dataBytes(),
        journal,
        errors: failed,
        p99_ms: result.latency.p99,
      });
      const left = Math.max(0, Math.round((total_s - elapsed()) / 60));
      progress(
        `soak: ${rate}/s, p99 ${result.latency.p99.toFixed(1)} ms, journal ${journal}, ${left} minutes left`,
      );
    }
  } finally {
    await end();
  }
  const made = await end();
  await drain(options);
  return { samples, findings: findingsOf(samples, rate, made) };
}
