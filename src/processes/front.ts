/** The role `front`: serves HTTP for bots and people. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, demoKeyPath, providerOf, pushOf, ratesOf } from '../config/config.js';
import { createReceivers } from '../delivery/outbound/receivers.js';
import { referencePages } from '../docs/reference.js';
import { fail } from '../errors.js';
import { type Engine, loadEngine } from '../http/engine.js';
import type { AccessListener } from '../http/exchange_context.js';
import { type HttpServer, listen } from '../http/server.js';
import { createProvider } from '../identity/provider.js';
import { createLeakKeys } from '../leaks/keys.js';
import { limits } from '../limits.js';
import { type AccessLog, createAccessLog } from '../obs/log.js';
import { gauge, type Metrics } from '../obs/metrics.js';
import { createRequestMeter } from '../obs/requests.js';
import { createPushService } from '../push/service.js';
import { rawBodyBound } from '../server/body_bounds.js';
import { createClientAddress, createTrust } from '../server/client_address.js';
import { createDispatch } from '../server/dispatch.js';
import { leakReportPath } from '../server/endpoint.js';
import type { RequestHandler } from '../server/request.js';
import { demoPages } from '../web/demo.js';
import { applicationPages } from '../web/pages.js';
import { type Backends, StartError } from './backends.js';
import { metricsOf, statusPages, tellFigures } from './metrics.js';
import { createOperations } from './overview.js';
import type { Role } from './role.js';
import { tracedRequests, traceResults } from './tracing.js';

/** Form of a request id. No token has this form. */
const requestName = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Takes the request id from a trusted balancer, else makes one from the node and a number. Ids from clients are not
 * used, because a client might send its token.
 */
function accessListener(access: AccessLog, trustedProxies: readonly string[]): AccessListener {
  const isTrusted = createTrust(trustedProxies);
  const node = randomBytes(6).toString('base64url');
  let count = 0;
  return {
    name: (request) =>
      request.requestId !== '' && requestName.test(request.requestId) && isTrusted(request)
        ? request.requestId
        : `${node}-${(++count).toString(36)}`,
    over(request, name, status, ms) {
      const { method: verb, called: call, calledBy, path } = request;
      const by = path.startsWith('/api/') ? 'user' : 'bot';
      const caller = calledBy === 0 ? {} : { [by]: calledBy };
      access.note({ request: name, verb, call, status, ms: Math.round(ms * 10) / 10, ...caller });
    },
  };
}

/** Registers the metrics of a front besides those of its requests. */
function tellOfFront(metrics: Metrics, { store }: Backends, server: HttpServer): void {
  const gauge = (name: string, help: string, read: () => number) =>
    metrics.tell({ kind: 'gauge', name, help, read });
  gauge('petrel_open_requests', 'Open requests and streams.', () => server.openRequests());
  gauge('petrel_waiting_polls', 'Long polls waiting on this node.', () => store.polls.waiting());
  gauge('petrel_open_streams', 'Event streams open on this node.', () => store.streams.count());
  gauge('petrel_remembered_tokens', 'Tokens cached on this node.', () => store.auth.stats.remembered);
  gauge('petrel_auth_lease', '1 while this node may use its cached tokens.', () =>
    store.auth.stats.leased ? 1 : 0,
  );
  metrics.tell({
    name: 'petrel_guesses_slowed_total',
    help: 'Calls answered 429 because their address tried too many unknown tokens.',
    kind: 'counter',
    read: () => store.guesses.slowed,
  });
  metrics.tell({
    name: 'petrel_refused_by_rate_total',
    help: 'Calls refused because of a RATE_PER_… setting.',
    kind: 'counter',
    labels: ['per'],
    read: () => Object.entries(store.fairUse?.refused ?? {}).map(([per, count]) => [[per], count] as const),
  });
}

const isLoopback = (host: string) => host === 'localhost' || host === '::1' || /^127\./.test(host);

/** Logs the HTTP engine in use and its limitations. */
function tellEngine(log: Backends['log'], engine: Engine, config: Config): void {
  log.info({ engine: engine.name, version: engine.version }, 'HTTP engine');
  if (engine.note) log.info(`the current HTTP engine does not run here: ${engine.note}`);
  if (engine.headBytesMax < limits.head_bytes_max)
    log.info(
      `this HTTP engine drops a request head over ${engine.headBytesMax} bytes that arrives in two reads`,
    );
  if (!isLoopback(config.HOST) && config.TRUSTED_PROXIES.length === 0)
    log.warn(
      'TRUSTED_PROXIES is empty, but a front needs a proxy that refuses malformed headers: the HTTP engine runs the body as a second request after a header line with an empty name',
    );
}

const files_look_ms = 30_000;

/** Prevents the start when uploads cannot be written, and checks again regularly. Errors: StartError. */
async function watchFiles({ filesProblem, log, figures }: Backends) {
  let problem = await filesProblem();
  if (problem !== null) throw new StartError(problem);
  const timer = setInterval(async () => {
    const found = await filesProblem();
    if (found !== null && found !== problem) log.error({ reason: found }, 'uploads fail');
    if (found === null && problem !== null) log.info('uploads work again');
    problem = found;
  }, files_look_ms);
  timer.unref();
  figures.push(
    gauge('petrel_files_writable', '1 if uploaded files could be written at the last check.', () =>
      problem === null ? 1 : 0,
    ),
  );
  return { problem: () => problem, stop: () => clearInterval(timer) };
}

export async function startFront(backends: Backends): Promise<Role> {
  const { config, log, store, files, connection, traces } = backends;
  const engine = loadEngine();
  const uploads = await watchFiles(backends);
  tellEngine(log, engine, config);
  const metrics = metricsOf(engine);
  const meter = createRequestMeter();
  for (const figure of meter.figures) metrics.tell(figure);
  const access = config.ACCESS_LOG ? createAccessLog('front') : undefined;
  let leaving = false;
  const provider = providerOf(config);
  // Without Redis a front can answer no request. On a cluster the token lease does not count: one master holds all
  // leases, and its loss must not stop every front. Without the lease, tokens are looked up at each call.
  const isReady = () =>
    !leaving && connection.reachable() && (connection.clustered || store.auth.stats.leased);
  const own = {
    ...referencePages(config.BASE_URL, ratesOf(config)),
    ...statusPages(metrics, isReady, uploads.problem),
    ...applicationPages(),
    ...demoPages(config.DEMO_FILE, demoKeyPath),
  };
  const receivers = createReceivers(config.WEBHOOK_ALLOW_CIDRS, config.WEBHOOK_DENY_CIDRS);
  const pushing = pushOf(config);
  const dispatch = createDispatch({
    store,
    files,
    receivers,
    push: pushing ? createPushService(pushing.privateKey, receivers.guard) : null,
    adminToken: config.ADMIN_TOKEN,
    adminCidrs: config.ADMIN_ALLOW_CIDRS,
    provider:
      provider &&
      createProvider(store, {
        ...provider,
        onError: (error) => log.error({ err: error }, 'the keys of the identity provider could not be read'),
      }),
    leakKeys:
      config.LEAK_REPORT_KEYS === undefined
        ? null
        : createLeakKeys({
            source: config.LEAK_REPORT_KEYS,
            onError: (error) =>
              log.error({ reason: (error as Error).message }, 'the keys for leak reports could not be read'),
          }),
    operations: createOperations(backends),
    trustedProxies: config.TRUSTED_PROXIES,
    onResult: traces && traceResults(traces),
    own,
  });
  const handler: RequestHandler = (request) =>
    leaving && request.handover ? fail('leaving') : dispatch.handle(request);
  const traced = traces ? tracedRequests(traces, handler, meter) : { handler, meter };
  const server = await listen({
    engine,
    host: config.HOST,
    port: config.PORT,
    shared: config.SHARE_PORT,
    bodyBound: rawBodyBound(),
    admit: dispatch.admit,
    clientAddress: createClientAddress(config.TRUSTED_PROXIES),
    handler: traced.handler,
    signed: {
      path: leakReportPath,
      keyId: config.LEAK_REPORT_KEY_HEADER.toLowerCase(),
      signature: config.LEAK_REPORT_SIGNATURE_HEADER.toLowerCase(),
      bytesMax: limits.leak_body_bytes_max,
    },
    onFault: (error, request) => log.error({ err: error, request }, 'a call failed unexpectedly'),
    meter: traced.meter,
    access: access && accessListener(access, config.TRUSTED_PROXIES),
  });
  tellOfFront(metrics, backends, server);
  backends.node.parts.push(() => ({
    engine: `${engine.name} ${engine.version}`,
    front: {
      open: server.openRequests(),
      polls: store.polls.waiting(),
      streams: store.streams.count(),
      calls: meter.told(limits.node_calls_told_max),
    },
  }));
  tellFigures(metrics, backends);
  await store.auth.start();
  log.info({ port: server.port }, 'serving');
  return {
    async stop() {
      leaving = true;
      uploads.stop();
      server.leave();
      if (config.DRAIN_MS > 0) await sleep(config.DRAIN_MS);
      store.polls.close();
      store.streams.close();
      await server.close();
      await store.auth.stop();
      access?.close();
    },
  };
}
