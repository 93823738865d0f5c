/** Runs the role `front`, which serves HTTP for bots and people. */

import { publicPost } from '../actions/public_posts.js';
import {
  baseUrlOf,
  type Config,
  demoKeyPath,
  providerOf,
  pushOf,
  ratesOf,
  signInOf,
} from '../config/config.js';
import type { Guard } from '../delivery/outbound/guard.js';
import { createReceivers } from '../delivery/outbound/receivers.js';
import { keySetPath, publicKeySet } from '../delivery/outbound/signing_keys.js';
import { createPings } from '../delivery/ping.js';
import { referencePages } from '../docs/reference.js';
import { endpoints } from '../endpoints/endpoints.gen.js';
import { fail } from '../errors.js';
import { type Engine, loadEngine } from '../http/engine.js';
import type { AccessListener } from '../http/exchange_context.js';
import { httpLimits } from '../http/limits.js';
import { type HttpServer, listen } from '../http/server.js';
import { createProvider } from '../identity/provider.js';
import { createSignIn } from '../identity/sign_in.js';
import { createLeakKeys } from '../leaks/keys.js';
import { leakLimits } from '../leaks/limits.js';
import { methods } from '../methods/methods.gen.js';
import { type AccessLog, createAccessLog } from '../obs/log.js';
import { figuresOf, type Metrics } from '../obs/metrics.js';
import { createRequestMeter, type RequestMeter } from '../obs/requests.js';
import { createPreviews } from '../previews/previews.js';
import { createPushService } from '../push/service.js';
import type { Random } from '../random.js';
import { rawBodyBound } from '../server/body_bounds.js';
import type { DispatchOptions } from '../server/call_context.js';
import { createClientAddress, createTrust } from '../server/client_address.js';
import { createDispatch, type Dispatch } from '../server/dispatch.js';
import type { LinkPreviews, PostPages, SignIn } from '../server/endpoint.js';
import { leakReportPath } from '../server/endpoint.js';
import type { RequestHandler } from '../server/request.js';
import { demoPages } from '../web/demo.js';
import { applicationPages } from '../web/pages.js';
import { createPostPage } from '../web/post_page.js';
import { type Backends, StartError } from './backends.js';
import { frontFigures } from './history.js';
import { processLimits } from './limits.js';
import { metricsOf, registerMetrics, statusPages } from './metrics.js';
import { createOperations } from './overview.js';
import type { Role } from './role.js';
import { signerOf } from './signer.js';
import { tracedRequests, traceResults } from './tracing.js';

/**
 * Serves the public keys with which receivers verify deliveries. Without WEBHOOK_SIGNING_KEYS, the page does not exist.
 */
function keyPages({ WEBHOOK_SIGNING_KEYS: keys }: Config): Readonly<Record<string, RequestHandler>> {
  if (keys === undefined) return {};
  const text = publicKeySet(keys);
  return { [keySetPath]: (request) => request.reply(200, text) };
}

/** Matches valid request ids. Never matches a bot's or person's token, because these tokens contain a colon. */
const requestName = /^[A-Za-z0-9._-]{1,64}$/;

/**
 * Takes the request id from a trusted load balancer. Otherwise builds it from the node's name and a number. An id that
 * a client sends is ignored, because the client might send its token.
 */
function accessListener(
  access: AccessLog,
  random: Random,
  trustedProxies: readonly string[],
): AccessListener {
  const isTrusted = createTrust(trustedProxies);
  const node = random.bytes(6).toString('base64url');
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

function report(
  metrics: Metrics,
  backends: Backends,
  engine: Engine,
  server: HttpServer,
  meter: RequestMeter,
): void {
  const { store, node } = backends;
  const own = figuresOf(
    {
      petrel_open_requests: 'Open requests and streams.',
      petrel_waiting_polls: 'Long polls waiting on this node.',
      petrel_open_streams: 'Event streams open on this node.',
      petrel_remembered_tokens: 'Tokens cached on this node.',
      petrel_auth_lease: '1 while this node may use its cached tokens.',
      petrel_durable_waiting: 'Durable calls that are not answered yet.',
      petrel_durable_confirmed_total: 'Durable calls whose changes were in Postgres before the answer.',
      petrel_durable_unconfirmed_total: 'Durable calls answered 503, because their outcome is unknown.',
      petrel_guesses_slowed_total: 'Calls answered 429 because their address tried too many unknown tokens.',
    },
    () => ({
      petrel_open_requests: server.openRequests(),
      petrel_waiting_polls: store.polls.waiting(),
      petrel_open_streams: store.streams.count() + store.polls.streaming(),
      petrel_remembered_tokens: store.auth.stats.remembered,
      petrel_auth_lease: Number(store.auth.stats.leased),
      petrel_durable_waiting: store.durability.stats.waiting,
      petrel_durable_confirmed_total: store.durability.stats.confirmed,
      petrel_durable_unconfirmed_total: store.durability.stats.unconfirmed,
      petrel_guesses_slowed_total: store.guesses.slowed,
    }),
  );
  for (const figure of [...meter.figures, ...own]) metrics.register(figure);
  metrics.register({
    name: 'petrel_refused_by_rate_total',
    help: 'Calls refused because of a RATE_PER_… setting.',
    kind: 'counter',
    labels: ['per'],
    read: () => Object.entries(store.fairUse?.refused ?? {}).map(([per, count]) => [[per], count] as const),
  });
  registerMetrics(metrics, backends);
  node.parts.push(() => ({
    engine: `${engine.name} ${engine.version}`,
    front: {
      open: server.openRequests(),
      polls: store.polls.waiting(),
      streams: store.streams.count() + store.polls.streaming(),
      calls: meter.callFigures(processLimits.node_calls_reported_max),
    },
  }));
  node.figures.push(() => frontFigures(meter.totals()));
}

const isLoopback = (host: string) => host === 'localhost' || host === '::1' || /^127\./.test(host);

function logEngine(log: Backends['log'], engine: Engine, config: Config): void {
  log.info({ engine: engine.name, version: engine.version }, 'HTTP engine');
  if (engine.note) log.info(`this machine cannot run the current HTTP engine: ${engine.note}`);
  if (engine.headBytesMax < httpLimits.head_bytes_max)
    log.info(
      `this HTTP engine drops a request if its head is larger than ${engine.headBytesMax} bytes and arrives in two reads`,
    );
  if (!isLoopback(config.HOST) && config.TRUSTED_PROXIES.length === 0)
    log.warn(
      'TRUSTED_PROXIES is empty: run this front only behind a proxy that refuses malformed headers, because clients can otherwise smuggle requests',
    );
}

const files_look_ms = 30_000;

/** Throws a StartError if uploaded files cannot be written. Otherwise repeats the check regularly and logs changes. */
async function watchFiles({ filesProblem, time, log, figures }: Backends) {
  let problem = await filesProblem();
  if (problem !== null) throw new StartError(problem);
  const timer = time.every(files_look_ms, async () => {
    const found = await filesProblem();
    if (found !== null && found !== problem) log.error({ reason: found }, 'uploads fail');
    if (found === null && problem !== null) log.info('uploads work again');
    problem = found;
  });
  timer.unref();
  const help = { petrel_files_writable: '1 if uploaded files could be written at the last check.' };
  figures.push(...figuresOf(help, () => ({ petrel_files_writable: Number(problem === null) })));
  return { problem: () => problem, stop: () => time.cancel(timer) };
}

/** Creates the pages of posts. If the setting POST_PAGES is off, the pages show no post and only offer to sign in. */
function postPages({ config, store }: Backends): PostPages | undefined {
  const pages = createPostPage(baseUrlOf(config));
  if (pages === undefined) return undefined;
  const find = async (externalId: string) =>
    config.POST_PAGES ? publicPost(store, externalId) : fail('post_not_found');
  return { find, ...pages };
}

/** Returns the ways in which people without a token can get one. */
function waysToSignIn({ config, store, secrets, time, log }: Backends): SignIn {
  const given = signInOf(config);
  const onFailure = (reason: string, ours: boolean) => {
    if (ours) log.error({ reason }, 'a sign-in failed, because the identity provider gave no valid answer');
    else log.info({ reason }, 'a sign-in was refused');
  };
  return {
    isOpen: config.SIGN_UP === 'open',
    provider: given === undefined ? null : createSignIn(store, { ...given, secrets, time, onFailure }),
    isSecure: baseUrlOf(config).startsWith('https:'),
  };
}

/** Creates the link previews. Returns null without the setting LINK_PREVIEWS. */
function openPreviews({ config, time, store, held, figures }: Backends, guard: Guard): LinkPreviews | null {
  if (!config.LINK_PREVIEWS) return null;
  const previews = createPreviews({ guard, time, store, held });
  const help = {
    petrel_link_previews_waiting: 'Calls that wait until this node may load another page for a link preview.',
  };
  figures.push(...figuresOf(help, () => ({ petrel_link_previews_waiting: previews.waiting() })), {
    name: 'petrel_link_preview_loads_total',
    help: 'Pages loaded for link previews, by outcome. `none`: not a page with a title. `failed`: not reached, or too slow.',
    kind: 'counter',
    labels: ['outcome'],
    read: () => Object.entries(previews.loads).map(([outcome, count]) => [[outcome], count] as const),
  });
  return previews;
}

function openDispatch(backends: Backends, own: DispatchOptions['own']): Dispatch {
  const { config, time, log, store, files, traces } = backends;
  const receivers = createReceivers(config.WEBHOOK_ALLOW_CIDRS, config.WEBHOOK_DENY_CIDRS, time);
  const pushing = pushOf(config);
  const provider = providerOf(config);
  const onProviderError = (error: unknown) =>
    log.error({ err: error }, 'the keys of the identity provider could not be read');
  const source = config.LEAK_REPORT_KEYS;
  const onLeakKeysError = (error: unknown) =>
    log.error(
      { reason: (error as Error).message },
      'the keys that verify reports of leaked tokens could not be read',
    );
  return createDispatch({
    methods,
    endpoints,
    store,
    files,
    receivers,
    push: pushing ? createPushService(pushing.privateKey, receivers.guard) : null,
    adminToken: config.ADMIN_TOKEN,
    durable: config.DURABLE,
    adminCidrs: config.ADMIN_ALLOW_CIDRS,
    provider: provider && createProvider(store, { ...provider, time, onError: onProviderError }),
    leakKeys: source === undefined ? null : createLeakKeys({ source, time, onError: onLeakKeysError }),
    operations: createOperations(backends),
    linkPreviews: openPreviews(backends, receivers.guard),
    signIn: waysToSignIn(backends),
    suggested: config.SUGGESTED_CHATS,
    pings: createPings({ guard: receivers.guard, signer: signerOf(config), time, held: backends.held }),
    trustedProxies: config.TRUSTED_PROXIES,
    onResult: traces && traceResults(traces),
    postPages: postPages(backends),
    own,
  });
}

/** Starts a front. `around` can wrap the function that handles requests. */
export async function startFront(
  backends: Backends,
  _stopping?: AbortSignal,
  around: (dispatch: Dispatch) => Dispatch = (dispatch) => dispatch,
): Promise<Role> {
  const { config, time, random, log, store, connection, traces } = backends;
  const engine = loadEngine();
  const uploads = await watchFiles(backends);
  logEngine(log, engine, config);
  const metrics = metricsOf(engine);
  const access = config.ACCESS_LOG ? createAccessLog('front', time) : undefined;
  let leaving = false;
  // Returns whether the front can answer requests. The front needs Redis, and also a lease on its token cache unless
  // Redis is a cluster. In a cluster, one master has all leases, and losing this master must not stop every front.
  // Without a lease, the front looks up the token of each call.
  const isReady = () =>
    !leaving && connection.reachable() && (connection.clustered || store.auth.stats.leased);
  const routed = openDispatch(backends, {
    ...referencePages({ methods, endpoints, baseUrl: config.BASE_URL, rates: ratesOf(config) }),
    ...keyPages(config),
    ...statusPages(metrics, isReady, uploads.problem),
    ...applicationPages(),
    ...demoPages(config.DEMO_FILE, demoKeyPath),
  });
  const dispatch = around(routed);
  const handler: RequestHandler = (request) =>
    leaving && request.handover ? fail('leaving') : dispatch.handle(request);
  const meter = createRequestMeter(time);
  const server = await listen({
    engine,
    time,
    host: config.HOST,
    port: config.PORT,
    shared: config.SHARE_PORT,
    bodyBound: rawBodyBound(endpoints),
    admit: dispatch.admit,
    clientAddress: createClientAddress(config.TRUSTED_PROXIES),
    ...(traces ? tracedRequests(traces, handler, meter) : { handler, meter }),
    signed: {
      path: leakReportPath,
      keyId: config.LEAK_REPORT_KEY_HEADER.toLowerCase(),
      signature: config.LEAK_REPORT_SIGNATURE_HEADER.toLowerCase(),
      bytesMax: leakLimits.leak_body_bytes_max,
    },
    onFault: (error, request) => log.error({ err: error, request }, 'a call failed unexpectedly'),
    access: access && accessListener(access, random, config.TRUSTED_PROXIES),
  });
  report(metrics, backends, engine, server, meter);
  await store.auth.start();
  log.info({ port: server.port }, 'serving');
  return {
    async stop() {
      leaving = true;
      uploads.stop();
      server.leave();
      if (config.DRAIN_MS > 0) await time.sleep(config.DRAIN_MS);
      store.polls.close();
      store.inlineWaits.close();
      store.streams.close();
      await server.close();
      store.pendingEdits.stop();
      await store.auth.stop();
      access?.close();
    },
  };
}
