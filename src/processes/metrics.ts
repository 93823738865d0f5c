/**
 * Serves a process's status pages: health, readiness and metrics. Fronts serve them on their own port, other roles on
 * METRICS_PORT.
 */

import { version } from '../config/version.js';
import { fail } from '../errors.js';
import { type Engine, loadEngine } from '../http/engine.js';
import { listen } from '../http/server.js';
import { createMetrics, figuresOf, type Metrics } from '../obs/metrics.js';
import type { ApiRequest, RequestHandler } from '../server/request.js';
import type { Backends } from './backends.js';
import type { Role } from './role.js';

export const metricsOf = ({ name, version: engineVersion }: Engine): Metrics =>
  createMetrics({ version, engine: name, engineVersion });

/**
 * Returns the status pages by path. If `problem` returns a text, the readiness page also reports that uploaded files
 * cannot be written. The process still counts as ready, because calls without files work.
 */
export const statusPages = (
  metrics: Metrics,
  isReady: () => boolean,
  problem: () => string | null = () => null,
): Readonly<Record<string, RequestHandler>> => ({
  '/healthz': (request: ApiRequest) => request.reply(200, '{"ok":true,"result":true}'),
  '/readyz': (request: ApiRequest) => {
    const ready = isReady();
    const problems = problem() === null ? {} : { files: 'uploaded files cannot be written' };
    request.reply(ready ? 200 : 503, JSON.stringify({ ok: ready, result: ready, ...problems }));
  },
  '/metrics': async (request: ApiRequest) =>
    request.replyWith(200, metrics.contentType, await metrics.text()),
});

export function registerMetrics(
  metrics: Metrics,
  { config, connection, keys, pool, runner, wakeQueue, figures }: Backends,
): void {
  metrics.register({
    name: 'petrel_script_seconds',
    help: 'Duration of Redis script calls.',
    kind: 'histogram',
    labels: ['script'],
    *read() {
      for (const [script, times] of runner.times.byName) if (times.sumMs > 0) yield [[script], times];
    },
  });
  metrics.register({
    name: 'petrel_script_troubles_total',
    help: 'Redis script calls that needed another attempt or failed, by reason.',
    kind: 'counter',
    labels: ['script', 'why'],
    read: () => runner.troubles.rows(),
  });
  metrics.register({
    name: 'petrel_postgres_connections',
    help: 'Postgres connections by state, and calls waiting for one.',
    kind: 'gauge',
    labels: ['state'],
    read: () => Object.entries(pool.stats()).map(([state, count]) => [[state], count] as const),
  });
  const own = figuresOf(
    {
      petrel_doorbell_rings_total: 'Wake-ups of delivery workers that this process sent.',
      petrel_doorbell_rings_dropped_total:
        'Wake-ups not sent because too many were waiting. A sweep finds their bots later.',
      petrel_redis_reachable: '1 while at least one Redis server is usable.',
      petrel_postgres_retries_total: 'Transactions repeated because Postgres aborted them.',
      petrel_partitions: 'Partitions of the installation.',
      petrel_journal_high_water: 'Journal entries of a partition above which changes are refused.',
      petrel_journal_bytes_max: 'Bytes of a partition’s journal above which changes are refused.',
    },
    () => ({
      petrel_doorbell_rings_total: wakeQueue.stats.sent,
      petrel_doorbell_rings_dropped_total: wakeQueue.stats.dropped,
      petrel_redis_reachable: Number(connection.reachable()),
      petrel_postgres_retries_total: pool.retries(),
      petrel_partitions: keys.partitions.count,
      petrel_journal_high_water: config.JOURNAL_HIGH_WATER,
      petrel_journal_bytes_max: config.JOURNAL_BYTES_MAX,
    }),
  );
  for (const figure of [...own, ...figures]) metrics.register(figure);
}

/** Serves the status pages if METRICS_PORT is set. This server stops after the other roles of the process. */
export async function startMetrics(backends: Backends, stopping: AbortSignal): Promise<Role> {
  const { config, time, log, connection } = backends;
  if (config.METRICS_PORT === undefined) return { stop: async () => undefined };
  const engine = loadEngine();
  const metrics = metricsOf(engine);
  registerMetrics(metrics, backends);
  const pages = statusPages(metrics, () => !stopping.aborted && connection.reachable());
  const server = await listen({
    engine,
    time,
    host: config.HOST,
    port: config.METRICS_PORT,
    shared: false,
    handler(request) {
      const page = Object.hasOwn(pages, request.path) ? pages[request.path] : undefined;
      return page ? page(request) : fail('not_found');
    },
    onFault: (error) => log.error({ err: error }, 'a request for a status page failed unexpectedly'),
  });
  log.info({ port: server.port }, 'metrics');
  return { stop: () => server.close() };
}
