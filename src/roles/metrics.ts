/** What a process tells of itself over HTTP: alive, ready, metrics. Fronts on their own port, other roles on METRICS_PORT. */
import type { ApiRequest, RequestHandler } from '../api/request.js';
import { fail } from '../errors.js';
import { type Engine, loadEngine } from '../http/engine.js';
import { listen } from '../http/server.js';
import { createMetrics, type Metrics } from '../obs/metrics.js';
import { version } from '../version.js';
import type { Backends } from './backends.js';
import type { Role } from './role.js';

export const metricsOf = ({ name, version: engineVersion, native }: Engine): Metrics =>
  createMetrics({ version, engine: name, engineVersion, native });

/** Pages by their paths. */
export const statusPages = (
  metrics: Metrics,
  isReady: () => boolean,
): Readonly<Record<string, RequestHandler>> => ({
  '/healthz': (request: ApiRequest) => request.reply(200, '{"ok":true,"result":true}'),
  '/readyz': (request: ApiRequest) => {
    const ready = isReady();
    request.reply(ready ? 200 : 503, `{"ok":${ready},"result":${ready}}`);
  },
  '/metrics': async (request: ApiRequest) =>
    request.replyWith(200, metrics.contentType, await metrics.text()),
});

/** What every process has to tell, and what its roles have. */
export function tellFigures(metrics: Metrics, { runner, doorbell, figures }: Backends): void {
  metrics.gauge('petrel_script_calls', 'Redis scripts called.', () =>
    [...runner.counts.values()].reduce((a, b) => a + b, 0),
  );
  metrics.gauge(
    'petrel_doorbell_rings',
    'Rings for webhooks that this process sent.',
    () => doorbell.stats.rung,
  );
  for (const figure of figures) metrics.gauge(...figure);
}

/** Answers on METRICS_PORT, where one is set, until the roles that were started before it have stopped. */
export async function startMetrics(backends: Backends, isStopping: () => boolean): Promise<Role> {
  const { config, log, connection } = backends;
  if (config.METRICS_PORT === undefined) return { stop: async () => undefined };
  const engine = loadEngine();
  const metrics = metricsOf(engine);
  tellFigures(metrics, backends);
  const pages = statusPages(metrics, () => !isStopping() && connection.reachable());
  const server = await listen({
    engine,
    host: config.HOST,
    port: config.METRICS_PORT,
    shared: false,
    handler(request) {
      const page = Object.hasOwn(pages, request.path) ? pages[request.path] : undefined;
      return page ? page(request) : fail('not_found');
    },
    onFault: (error) => log.error({ err: error }, 'a page of status failed unexpectedly'),
  });
  log.info({ port: server.port }, 'metrics');
  return { stop: () => server.close() };
}
