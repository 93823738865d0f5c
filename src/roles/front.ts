/** The role `front`: HTTP for bots and people. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { rawBodyBound } from '../api/body_bounds.js';
import { createDispatch } from '../api/dispatch.js';
import { leakReportPath } from '../api/registry.js';
import { providerOf } from '../config.js';
import { createReceivers } from '../delivery/receivers.js';
import { referencePages } from '../docs/reference.js';
import { loadEngine } from '../http/engine.js';
import type { AccessListener } from '../http/exchange_context.js';
import { listen } from '../http/server.js';
import { createProvider } from '../jwt/provider.js';
import { createLeakKeys } from '../leaks/keys.js';
import { limits } from '../limits.js';
import { type AccessLog, createAccessLog } from '../obs/log.js';
import { demoPages } from '../web/demo.js';
import { applicationPages } from '../web/pages.js';
import type { Backends } from './backends.js';
import { metricsOf, statusPages, tellFigures } from './metrics.js';
import type { Role } from './role.js';

/** Requests are named by this node and a number: what a client calls its request might be its token. */
function accessListener(access: AccessLog): AccessListener {
  const node = randomBytes(6).toString('base64url');
  let count = 0;
  return {
    name: () => `${node}-${(++count).toString(36)}`,
    over(request, name, status, ms) {
      const { method: verb, called: call, calledBy, path } = request;
      const by = path.startsWith('/api/') ? 'user' : 'bot';
      const caller = calledBy === 0 ? {} : { [by]: calledBy };
      access.note({ request: name, verb, call, status, ms: Math.round(ms * 10) / 10, ...caller });
    },
  };
}

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
  const access = config.ACCESS_LOG ? createAccessLog('front') : undefined;
  let leaving = false;
  const provider = providerOf(config);
  // Without Redis a front can answer nobody. The lease on what it remembers may be missing on a cluster, where one
  // master holds all leases and must not take every front out with it: tokens are then looked up at each call.
  const isReady = () =>
    !leaving && connection.reachable() && (connection.clustered || store.auth.stats.leased);
  const own = {
    ...referencePages(config.BASE_URL),
    ...statusPages(metrics, isReady),
    ...applicationPages(),
    ...demoPages(config.DEMO_FILE),
  };
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
      leakKeys:
        config.LEAK_REPORT_KEYS === undefined
          ? null
          : createLeakKeys({
              source: config.LEAK_REPORT_KEYS,
              onError: (error) =>
                log.error({ reason: (error as Error).message }, 'the keys of leak reports cannot be read'),
            }),
      trustedProxies: config.TRUSTED_PROXIES,
      own,
      onCall: metrics.call,
    }),
    signed: {
      path: leakReportPath,
      keyId: config.LEAK_REPORT_KEY_HEADER.toLowerCase(),
      signature: config.LEAK_REPORT_SIGNATURE_HEADER.toLowerCase(),
      bytesMax: limits.leak_body_bytes_max,
    },
    onFault: (error, request) => log.error({ err: error, request }, 'a call failed unexpectedly'),
    access: access && accessListener(access),
  });
  metrics.gauge('petrel_open_requests', 'Requests and streams not yet answered.', () =>
    server.openRequests(),
  );
  metrics.gauge('petrel_waiting_polls', 'Long polls that wait on this node.', () => store.polls.waiting());
  metrics.gauge('petrel_remembered_tokens', 'Tokens this node remembers.', () => store.auth.stats.remembered);
  metrics.gauge(
    'petrel_guesses_slowed',
    'Calls with tokens that never existed which were answered 429.',
    () => store.guesses.slowed,
  );
  for (const kind of ['bot', 'owner', 'chat', 'address'] as const)
    metrics.gauge(
      `petrel_refused_by_${kind}_rate`,
      `Calls refused because of the setting RATE_PER_${kind.toUpperCase()}.`,
      () => store.fairUse?.refused[kind] ?? 0,
    );
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
      access?.close();
    },
  };
}
