/**
 * Status pages of a process: health, readiness and metrics. Fronts serve them on their own port, other roles on
 * METRICS_PORT.
 */

import { version } from '../config/version.js';
import { fail } from '../errors.js';
import { type Engine, loadEngine } from '../http/engine.js';
import { listen } from '../http/server.js';
import { createMetrics, type Metrics } from '../obs/metrics.js';
import type { ApiRequest, RequestHandler } from '../server/request.js';
import type { Backends } from './backends.js';
import type { Role } from './role.js';

export const metricsOf = ({ name, version: engineVersion }: Engine): Metrics =>
  createMetrics({ version, engine: name, engineVersion });

/** Pages by path. A `problem` is shown beside readiness but does not end it, because calls without files still work. */
export const statusPages = (
  metrics: Metrics,
  isReady: () => boolean,
  problem: () => string | null = () => null,
): Readonly<Record<string, RequestHandler>> => ({
  '/healthz': (request: ApiRequest) => request.reply(200, '{"ok":true,"result":true}'),
  '/readyz': (request: ApiRequest) => {
    const ready = isReady();
    const told = problem() === null ? {} : { files: 'uploaded files cannot be written' };
    request.reply(ready ? 200 : 503, JSON.stringify({ ok: ready, result: ready, ...told }));
  },
  '/metrics': async (request: ApiRequest) =>
    request.replyWith(200, metrics.contentType, await metrics.text()),
});

/** Registers the metrics of every process and those of its roles. */
export function tellFigures(
  metrics: Metrics,
  { config, connection, keys, pool, runner, wakeQueue, figures }: Backends,
): void {
  const gauge = (name: string, help: string, read: () => number) =>
    metrics.tell({ kind: 'gauge', name, help, read });
  const counter = (name: string, help: string, read: () => number) =>
    metrics.tell({ kind: 'counter', name, help, read });
  metrics.tell({
    name: 'petrel_script_seconds',
    help: 'Duration of Redis script calls.',
    kind: 'histogram',
    labels: ['script'],
    *read() {
      for (const [script, times] of runner.times.byName) if (times.sumMs > 0) yield [[script], times];
    },
  });
  metrics.tell({
    name: 'petrel_script_troubles_total',
    help: 'Redis script calls that needed another attempt or failed, by reason.',
    kind: 'counter',
    labels: ['script', 'why'],
    read: () => runner.troubles.rows(),
  });
  counter(
    'petrel_doorbell_rings_total',
    'Wake-ups of delivery workers that this process sent.',
    () => wakeQueue.stats.sent,
  );
  counter(
    'petrel_doorbell_rings_dropped_total',
    'Wake-ups not sent because too many were waiting. A sweep finds their bots later.',
    () => wakeQueue.stats.dropped,
  );
  gauge('petrel_redis_reachable', '1 while at least one Redis server is usable.', () =>
    connection.reachable() ? 1 : 0,
  );
  counter('petrel_postgres_retries_total', 'Transactions repeated because Postgres aborted them.', () =>
    pool.retries(),
  );
  metrics.tell({
    name: 'petrel_postgres_connections',
    help: 'Postgres connections by state, and calls waiting for one.',
    kind: 'gauge',
    labels: ['state'],
    read: () => Object.entries(pool.stats()).map(([state, count]) => [[state], count] as const),
  });
  gauge('petrel_partitions', 'Partitions of the installation.', () => keys.partitions.count);
  gauge(
    'petrel_journal_high_water',
    'Journal entries of a partition above which changes are refused.',
    () => config.JOURNAL_HIGH_WATER,
  );
  gauge(
    'petrel_journal_bytes_max',
    'Bytes of a partition’s journal above which changes are refused.',
    () => config.JOURNAL_BYTES_MAX,
  );
  for (const figure of figures) metrics.tell(figure);
}

/** Serves the status pages on METRICS_PORT, if set, until the other roles of the process have stopped. */
export async function startMetrics(backends: Backends, stopping: AbortSignal): Promise<Role> {
  const { config, log, connection } = backends;
  if (config.METRICS_PORT === undefined) return { stop: async () => undefined };
  const engine = loadEngine();
  const metrics = metricsOf(engine);
  tellFigures(metrics, backends);
  const pages = statusPages(metrics, () => !stopping.aborted && connection.reachable());
  const server = await listen({
    engine,
    host: config.HOST,
    port: config.METRICS_PORT,
    shared: false,
    handler(request) {
      const page = Object.hasOwn(pages, request.path) ? pages[request.path] : undefined;
      return page ? page(request) : fail('not_found');
    },
    onFault: (error) => log.error({ err: error }, 'a status page failed unexpectedly'),
  });
  log.info({ port: server.port }, 'metrics');
  return { stop: () => server.close() };
}
