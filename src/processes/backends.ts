/**
 * Opens a role's backends in this order: Redis, Postgres, the store. Also checks that Redis and Postgres belong
 * together.
 */

import { baseUrlOf, type Config, issuerOf, redisOf, requireAll } from '../config/config.js';
import { version } from '../config/version.js';
import { deliveryLimits } from '../delivery/limits.js';
import { WakeQueue } from '../delivery/wake_queue.js';
import { ApiError } from '../errors.js';
import { createFiles, type Files } from '../files/files.js';
import { Measurer } from '../files/measurer.js';
import { filesProblem, openBlobStore } from '../files/storage.js';
import { type Adoption, Identity, IdentityError } from '../journal/identity.js';
import { Recovery } from '../journal/recovery.js';
import { managementIdentity } from '../manage/identity.js';
import type { Logger } from '../obs/log.js';
import type { Figure } from '../obs/metrics.js';
import type { Traces } from '../obs/traces.js';
import { createTroubles, type Troubles } from '../obs/troubles.js';
import { type Pool, RefusedServer } from '../postgres/pool.js';
import { createReplicas, noReplicas, type Replicas } from '../postgres/replicas.js';
import type { Shards } from '../postgres/shards.js';
import { asDatabase } from '../postgres/sql.js';
import { type Random, systemRandom } from '../random.js';
import { checkRedis, RedisCheckError } from '../redis/check.js';
import { RedisCluster } from '../redis/cluster.js';
import { RedisConnection, type RedisServers, reconnectDelay } from '../redis/connection.js';
import { type Hints, RedisHints } from '../redis/hints.js';
import { redisLimits } from '../redis/limits.js';
import { createMemoryWatch } from '../redis/memory.js';
import { createPauses, type Pause } from '../redis/pauses.js';
import { connectQueueClient } from '../redis/queue_client.js';
import type { Script } from '../redis/scripts/contract.js';
import { Runner, type ScriptRunner } from '../redis/scripts/scripts.js';
import { shownUrl } from '../redis/slots.js';
import { isCluster, type RedisTarget } from '../redis/target.js';
import { type Keys, makeKeys } from '../store/core/keys.js';
import type { Secrets } from '../store/core/secrets.js';
import { createStore, type Store } from '../store/store.js';
import { systemTime, type Time } from '../time.js';
import { checkPartitions, checkSettings, noteSecrets, openSecrets, StartError } from './installation.js';
import { createNodeKeys, type NodeKeys } from './node_keys.js';
import { type OwnNode, ownNode } from './own_node.js';
import { postgresFigures, reportPostgres } from './postgres_events.js';
import { redisFigures, reportHistories } from './redis_events.js';
import { checkSchemas, openShards, shardUrls, standbysOf } from './shards.js';

export { StartError };

export interface Backends {
  readonly config: Config;
  readonly time: Time;
  readonly random: Random;
  readonly installation: string;
  readonly log: Logger;
  readonly pool: Pool;
  readonly shards: Shards;
  readonly connection: RedisServers;
  readonly runner: ScriptRunner;
  readonly recovery: Recovery;
  readonly keys: Keys;
  readonly hints: Hints;
  readonly secrets: Secrets;
  readonly nodeKeys: NodeKeys;
  readonly store: Store;
  readonly files: Files;
  /** Returns why uploaded files cannot be written now, or null if they can. */
  readonly filesProblem: () => Promise<string | null>;
  /**
   * Returns true during a drill (a test with a restored backup). Petrel then sends no requests to webhooks and
   * browsers.
   */
  readonly held: () => boolean;
  readonly wakeQueue: WakeQueue;
  readonly figures: Figure[];
  readonly troubles: Troubles;
  /** The name and figures that this process reports to operators. Reports begin when the process starts to serve. */
  readonly node: OwnNode;
  readonly traces: Traces | undefined;
  readonly managementBot: number;
  close(): Promise<void>;
}

/**
 * Log texts that say what a failed background task means for users. A task fails if Redis or Postgres is unavailable,
 * or if it takes too long.
 */
const meaning = {
  wakeQueue:
    'a wake-up of a delivery worker was late, repeated or lost: no update is lost, a sweep finds it within a second',
  background: 'background work is late: nothing is lost, this or another process retries it within seconds',
};

/** Returns whether the failed call may be repeated. True if Redis or Postgres was unavailable, slow or full. */
export const isLate = (error: unknown): boolean =>
  error instanceof ApiError && (error.kind === 'unavailable' || error.kind === 'too_many_requests');

/**
 * Returns whether only an operator can remove the cause of an error, for example a wrong setting or an unsupported
 * version. An unavailable server may return by itself.
 */
const isFinal = (error: unknown) =>
  error instanceof StartError ||
  (error instanceof RedisCheckError && !error.away) ||
  (error instanceof IdentityError && !error.passing);

function refusalIn(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof RefusedServer) return at.message;
  return undefined;
}

/** The Redis scripts. The default is the scripts in lua/. */
type Scripts = ReadonlyMap<string, Script> | undefined;

type Patience = <T>(what: string, attempt: () => Promise<T>) => Promise<T>;

/**
 * Creates a function that repeats an attempt with jittered exponential backoff until the attempt succeeds. The function
 * gives up `msMax` after `createPatience` was called, and throws a StartError with the last reason.
 */
function createPatience(time: Time, random: Random, log: Logger, msMax: number): Patience {
  const deadline = time.monotonic() + msMax;
  return async (what, attempt) => {
    for (let tries = 0; ; tries++) {
      try {
        return await attempt();
      } catch (error) {
        if (isFinal(error)) throw error;
        const reason = refusalIn(error) ?? ((error as Error).message || (error as { code?: string }).code);
        if (time.monotonic() > deadline)
          throw new StartError(`${what} was not available within ${msMax / 1_000} s (START_MS): ${reason}`);
        if (tries === 0) log.warn({ reason }, `waiting for ${what}`);
        const rest = reconnectDelay(tries, random.number());
        await time.sleep(Math.min(rest, Math.max(0, deadline - time.monotonic()) + 1));
      }
    }
  };
}

export interface RedisOptions {
  readonly target: RedisTarget;
  readonly keys: Keys;
  readonly name: string;
  readonly onError: (error: Error) => void;
  readonly admit?: Identity['admit'];
  readonly time?: Time;
  readonly random?: Random;
}

export function openRedis(options: RedisOptions): { connection: RedisServers; hints: Hints } {
  const { target, keys, name, onError, admit, time = systemTime, random = systemRandom } = options;
  if (!isCluster(target)) {
    return {
      connection: new RedisConnection({
        url: target,
        name,
        onError,
        admit: admit && ((self) => admit(self, 0)),
        time,
        random,
      }),
      hints: new RedisHints(target, name, onError, { time, random }),
    };
  }
  const { slots } = keys.partitions;
  const cluster = new RedisCluster({
    ...{ seeds: target, name, slots, onError, time, random },
    ...(admit ? { admit } : {}),
  });
  return { connection: cluster, hints: new RedisHints(cluster, name, onError, { time, random }) };
}

/**
 * Opens the queue that wakes delivery workers: one shard on a single Redis server, several shards on a cluster. The two
 * layouts may use different keys, because an installation uses only one of them.
 */
function openWakeQueue({ target, keys, role, troubles, time }: Opening): WakeQueue {
  const onError = troubles.onDelay('wake queue', meaning.wakeQueue);
  const { count, tag, of } = keys.partitions;
  const shards = !isCluster(target) ? 1 : Math.min(deliveryLimits.wake_queue_shards, count);
  return new WakeQueue({
    connect: () => connectQueueClient(target, role, onError),
    tags: Array.from({ length: shards }, (_, shard) => tag(Math.floor((shard * count) / shards))),
    shardOf: (bot) => Math.floor((of(bot) * shards) / count),
    time,
    onError,
  });
}

async function openPartitions(connection: RedisServers, recovery: Recovery, count: number): Promise<void> {
  const byRun = new Map<string, number[]>();
  for (let partition = 0; partition < count; partition++) {
    const run = connection.at(partition)?.runId();
    if (run) byRun.set(run, [...(byRun.get(run) ?? []), partition]);
  }
  await Promise.all([...byRun].map(([run, partitions]) => recovery.openAll(partitions, run)));
}

/**
 * Waits up to a second until Redis is usable. If Redis is still not usable, throws `unavailable`, or an IdentityError
 * if Redis belongs to another installation.
 */
async function reachRedis(connection: RedisServers, identity: Identity): Promise<void> {
  await connection.ready(1_000).catch((error: Error) => {
    throw identity.refusal() ?? error;
  });
}

function logMemory(log: Logger, full: boolean, server: string): void {
  if (full)
    log.warn(
      { server },
      'Redis is nearly out of memory: sends and uploads are refused with 429, other calls continue',
    );
  else log.info({ server }, 'Redis has free memory again: sends and uploads are accepted again');
}

function logPause(log: Logger, pause: Pause): void {
  log.warn(
    { ...pause },
    'calls on a partition waited or were refused while its slot migrated: nothing is lost',
  );
}

async function openManagementBot(store: Store, username: string): Promise<number> {
  try {
    return await store.management.ensure(managementIdentity(username));
  } catch (error) {
    if (!(error instanceof ApiError) || error.kind !== 'username_taken') throw error;
    throw new StartError(`the username @${username} is taken: choose another one with MANAGEMENT_BOT`);
  }
}

interface Opening {
  readonly time: Time;
  readonly random: Random;
  readonly config: ReturnType<typeof requireAll>;
  readonly target: RedisTarget;
  readonly keys: Keys;
  readonly role: string;
  readonly log: Logger;
  readonly adoption: Adoption;
  readonly troubles: Troubles;
  readonly node: OwnNode;
  readonly patiently: Patience;
  readonly scripts: Scripts;
}

async function openIdentity(opening: Opening): Promise<Identity> {
  const { config, keys, log, adoption, troubles, node, patiently, time, random } = opening;
  const identity = new Identity({
    time,
    random,
    url: config.DATABASE_URL,
    keys,
    node: node.id,
    adoption,
    onRefused: (reason) =>
      log.error(
        { reason },
        'Redis and Postgres do not belong to the same installation: this process uses neither',
      ),
    onAdopted: (generation) =>
      log.warn(
        { generation },
        'the installation now uses an empty Redis: changes that were only in the former Redis are lost',
      ),
    onError: troubles.onDelay(
      'the identity check of Redis and Postgres',
      'the check is repeated within seconds',
    ),
  });
  await patiently('Postgres', () => identity.open((pool) => checkSettings(asDatabase(pool), config)));
  return identity;
}

/** Imports the module for traces only if they are turned on. */
async function openTraces({ config, role, troubles, time, random }: Opening): Promise<Traces | undefined> {
  const { OTLP_TRACES_URL: url, OTLP_TRACES_RATIO: ratio } = config;
  if (!url) return undefined;
  const { Traces } = await import('../obs/traces.js');
  const onError = troubles.onDelay('traces', 'some traces are lost, nothing else');
  return new Traces({ url, ratio, role, version, time, random, onError });
}

function openReplicas({ config, role, troubles, time, random }: Opening): Replicas {
  const standbys = standbysOf(config);
  if (!/^(front|all)$/.test(role) || standbys.length === 0) return noReplicas;
  const onError = troubles.onDelay('the Postgres replica', 'reads go to the primary');
  return createReplicas({ standbys, max: config.POSTGRES_POOL, name: role, time, random, onError });
}

async function openServers(opening: Opening, identity: Identity) {
  const { config, target, keys, role, log, node, patiently, time, random } = opening;
  const { onError, onDelay } = opening.troubles;
  const { connection, hints } = openRedis({
    ...{ target, keys, name: role, time, random },
    onError: onError('redis'),
    admit: (server, partition) => identity.admit(server, partition),
  });
  const events = reportPostgres(log, time);
  const databases = openShards({
    time,
    random,
    config,
    keys,
    role,
    node: node.id,
    connection,
    runner: () => runner,
    events,
    identity,
    onError: onError('postgres'),
    onLate: onDelay('the marks and the shard map in Postgres', 'both are read later'),
  });
  const traces = await openTraces(opening);
  const histories = reportHistories(log, time);
  const recovery = new Recovery({
    time,
    random,
    shards: () => shards,
    keys,
    connection,
    highWater: config.JOURNAL_HIGH_WATER,
    bytesMax: config.JOURNAL_BYTES_MAX,
    runner: () => runner,
    trustSeals: config.PRIVATE_REDIS === 'kept',
    installation: identity.id,
    onRaised: histories.raised,
  });
  const memory = createMemoryWatch({
    time,
    connection,
    bytesMax: config.REDIS_MEMORY_MAX,
    onChange: (full, { url }) => logMemory(log, full, shownUrl(url)),
  });
  const pauses = createPauses((pause) => logPause(log, pause), time);
  const runner: ScriptRunner = new Runner({
    time,
    random,
    connection,
    recover: (partition, runId) => recovery.recover(partition, runId),
    pauses,
    memory,
    reconnectMsMax:
      role === 'front' ? redisLimits.redis_wait_ms_max : redisLimits.redis_wait_background_ms_max,
    onCall: traces && ((script, ms) => traces.script(script, ms)),
    ...(opening.scripts && { scripts: opening.scripts }),
  });
  await patiently('Redis', () => reachRedis(connection, identity));
  const shards: Shards = await patiently('Postgres', databases.follow);
  const replicas = openReplicas(opening);
  const figures = [
    ...redisFigures(histories, pauses, identity),
    ...postgresFigures(events, databases.all, replicas),
  ];
  return { connection, hints, databases, shards, traces, recovery, memory, runner, replicas, figures };
}

type Servers = Awaited<ReturnType<typeof openServers>>;

function openStore(
  { config, keys, troubles, time, random }: Opening,
  { databases, replicas, shards, runner, hints }: Servers,
  secrets: Secrets,
  wakeQueue: WakeQueue,
): Store {
  return createStore({
    time,
    random,
    db: databases.all[0].db,
    replicas,
    shards,
    scripts: runner,
    hints,
    keys,
    secrets,
    hotTtlMs: config.HOT_TTL_MS,
    wake: (bot) => wakeQueue.wake(bot),
    reactorsListed: config.REACTORS_LISTED,
    issuer: issuerOf(config),
    botsPerOwner: config.BOTS_PER_OWNER,
    rates: {
      bot: config.RATE_PER_BOT,
      person: config.RATE_PER_PERSON,
      owner: config.RATE_PER_OWNER,
      chat: config.RATE_PER_CHAT,
      address: config.RATE_PER_ADDRESS,
      reader: config.RATE_PER_READER,
      sign_up: config.SIGN_UPS_PER_ADDRESS,
      sign_ups: config.SIGN_UPS_TOTAL,
      sign_in: config.SIGN_INS_PER_ADDRESS,
    },
    uploadBounds: { bytesPerDay: config.UPLOAD_BYTES_PER_DAY, bytesTotal: config.UPLOAD_BYTES_TOTAL },
    guessing: { burst: config.GUESSES_BURST, perMinute: config.GUESSES_PER_MINUTE },
    transferConsent: config.TRANSFER_CONSENT,
    editAfterPress: config.EDIT_AFTER_PRESS,
    baseUrl: baseUrlOf(config),
    notingWindows: config.VAPID_PRIVATE_KEY !== undefined,
    onError: troubles.onDelay('background work', meaning.background, isLate),
  });
}

async function openFiles(
  { config, troubles, time, random }: Opening,
  { memory }: Servers,
  secrets: Secrets,
  store: Store,
) {
  const blobs = await openBlobStore(config, time, random);
  const files = createFiles({
    blobs,
    measurer: new Measurer(undefined, time),
    pepper: secrets.root,
    expiring: config.MEDIA_DAYS !== undefined,
    refusing: memory.anyFull,
    stored: store.uploads,
    time,
    random,
    onError: troubles.onError('files'),
  });
  return { files, filesProblem: () => filesProblem(blobs, config) };
}

/** Checks Redis and the schema of Postgres before anything is opened. Rejects if a check fails. */
async function startOpening(
  given: Config,
  role: string,
  log: Logger,
  adoption: Adoption,
  { time = systemTime, random = systemRandom, scripts }: Surroundings,
): Promise<Opening> {
  const config = requireAll(given);
  const target = redisOf(given);
  const patiently = createPatience(time, random, log, config.START_MS);
  const check = await patiently('Redis', () => checkRedis(target, undefined, time));
  for (const warning of check.warnings) log.warn(warning);
  await patiently('the schema of Postgres', () =>
    checkSchemas(shardUrls(config), adoption === 'unless_used'),
  );
  const keys = makeKeys(config.PARTITIONS);
  const troubles = createTroubles(log, time);
  const node = ownNode(random);
  return { config, time, random, scripts, target, keys, role, log, adoption, troubles, node, patiently };
}

/**
 * A process's clock, random numbers and scripts. The defaults are the system's clock, the system's random numbers, and
 * the scripts in lua/.
 */
export interface Surroundings {
  readonly time?: Time;
  readonly random?: Random;
  readonly scripts?: Scripts;
}

/**
 * Opens everything that a role needs. `adoption` says whether an empty Redis is accepted. Throws a ConfigError, a
 * StartError, an IdentityError, or the last error of Redis or Postgres.
 */
export async function openBackends(
  given: Config,
  role: string,
  log: Logger,
  adoption: Adoption,
  surroundings: Surroundings = {},
): Promise<Backends> {
  const opening = await startOpening(given, role, log, adoption, surroundings);
  const { config, keys, troubles, patiently, time, random } = opening;
  const { onError } = troubles;
  const identity = await openIdentity(opening);
  const servers = await openServers(opening, identity);
  const { connection, hints, databases, traces, recovery, memory, runner } = servers;
  const { pool, db } = databases.all[0];
  const secrets = await patiently('Postgres', () => openSecrets(db, config));
  const wakeQueue = openWakeQueue(opening);
  const store = openStore(opening, servers, secrets, wakeQueue);
  const { files, filesProblem } = await openFiles(opening, servers, secrets, store);
  await patiently('Redis', async () => {
    const first = connection.at(0);
    if (first) await checkPartitions(first.client, keys);
    await openPartitions(connection, recovery, config.PARTITIONS);
  });
  await memory.check();
  memory.start();
  const nodeKeys = createNodeKeys({
    connection,
    runner,
    keys,
    secrets,
    time,
    random,
    onError: onError('redis'),
  });
  await nodeKeys.join(log);
  await noteSecrets(db, secrets);
  const unwatchIdentity = adoption === 'unless_used' ? identity.watch(pool, connection) : null;
  const managementBot = await patiently('the management bot', () =>
    openManagementBot(store, config.MANAGEMENT_BOT),
  );
  return {
    ...opening,
    ...servers,
    installation: identity.id(),
    nodeKeys,
    managementBot,
    pool,
    secrets,
    store,
    files,
    wakeQueue,
    filesProblem,
    held: identity.held,
    async close() {
      await unwatchIdentity?.();
      memory.stop();
      await traces?.stop();
      await nodeKeys.leave();
      await files.close();
      await wakeQueue.close();
      hints.close();
      await connection.close();
      await servers.replicas.close();
      await databases.close();
    },
  };
}
