/** The role `front`: HTTP for bots and people. */
import { setTimeout as sleep } from 'node:timers/promises';
import { rawBodyBound } from '../api/body_bounds.js';
import { createDispatch } from '../api/dispatch.js';
import { providerOf } from '../config.js';
import { createReceivers } from '../delivery/receivers.js';
import { referencePages } from '../docs/reference.js';
import { loadEngine } from '../http/engine.js';
import { listen } from '../http/server.js';
import { createProvider } from '../jwt/provider.js';
import { limits } from '../limits.js';
import type { Backends } from './backends.js';
import { metricsOf, statusPages, tellFigures } from './metrics.js';
import type { Role } from './role.js';

export async function startFront(backends: Backends): Promise<Role> {
  const { config, log, store, files, connection } = backends;
  const engine = loadEngine();
  log.info({ engine: engine.name, version: engine.version, native: engine.native }, 'HTTP engine');
  if (!engine.native) log.error('the HTTP engine runs without its native binary: it is slow and checks less');
  if (engine.note) log.info(`the current HTTP engine does not run here: ${engine.note}`);
  if (engine.headBytesMax < limits.head_bytes_max) {
    log.info(
      `a request head over ${engine.headBytesMax} bytes that comes in two reads is dropped by this HTTP engine`,
    );
  }
  const metrics = metricsOf(engine);
  let leaving = false;
  const provider = providerOf(config);
  // Without Redis a front can answer nobody. The lease on what it remembers may be missing on a cluster, where one
  // master holds all leases and must not take every front out with it: tokens are then looked up at each call.
  const isReady = () =>
    !leaving && connection.reachable() && (connection.clustered || store.auth.stats.leased);
  const own = { ...referencePages(config.BASE_URL), ...statusPages(metrics, isReady) };
  const server = await listen({
    engine,
    host: config.HOST,
    port: config.PORT,
    shared: config.SHARE_PORT,
    bodyBound: rawBodyBound(),
    handler: createDispatch({
      store,
      files,
      receivers: createReceivers(config.WEBHOOK_ALLOW_CIDRS),
      adminToken: config.ADMIN_TOKEN,
      provider:
        provider &&
        createProvider(store, {
          ...provider,
          onError: (error) => log.error({ err: error }, 'the keys of the identity provider were not read'),
        }),
      own,
      onCall: metrics.call,
    }),
    onFault: (error) => log.error({ err: error }, 'a call failed unexpectedly'),
  });
  metrics.gauge('petrel_open_requests', 'Requests and streams not yet answered.', () =>
    server.openRequests(),
  );
  metrics.gauge('petrel_waiting_polls', 'Long polls that wait on this node.', () => store.polls.waiting());
  metrics.gauge('petrel_remembered_tokens', 'Tokens this node remembers.', () => store.auth.stats.remembered);
  tellFigures(metrics, backends);
  await store.auth.start();
  log.info({ port: server.port }, 'serving');
  return {
    async stop() {
      leaving = true;
      if (config.DRAIN_MS > 0) await sleep(config.DRAIN_MS);
      store.polls.close();
      store.streams.close();
      await server.close();
      await store.auth.stop();
    },
  };
}
