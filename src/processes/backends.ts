/** Opens what every role needs, in order: Redis, Postgres, the checks that they belong together, and the store. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Config, providerOf, redisOf, requireAll } from '../config/config.js';
import { version } from '../config/version.js';
import { createWakeQueue, type WakeQueue } from '../delivery/wake_queue.js';
import { ApiError } from '../errors.js';
import { createFiles, type Files } from '../files/files.js';
import { createMeasurer } from '../files/measurer.js';
import { filesProblem, openBlobStore } from '../files/storage.js';
import { type Adoption, createIdentity, type Identity, IdentityError } from '../journal/identity.js';
import { createRecovery, type Recovery } from '../journal/recovery.js';
import { limits } from '../limits.js';
import { managementIdentity } from '../manage/identity.js';
import type { Logger } from '../obs/log.js';
import type { Figure } from '../obs/metrics.js';
import type { Traces } from '../obs/traces.js';
import { createTroubles, type Troubles } from '../obs/troubles.js';
import { type Pool, RefusedServer } from '../postgres/pool.js';
import { createReplicas, noReplicas } from '../postgres/replicas.js';
import type { Shards } from '../postgres/shards.js';
import { asDatabase } from '../postgres/sql.js';
import { checkRedis, RedisCheckError } from '../redis/check.js';
import { connectCluster } from '../redis/cluster.js';
import { connectRedis, type RedisServers, reconnectDelay } from '../redis/connection.js';
import { createHints, type Hints } from '../redis/hints.js';
import { createMemoryWatch } from '../redis/memory.js';
import { createPauses } from '../redis/pauses.js';
import { connectQueueClient } from '../redis/queue_client.js';
import { createRunner, type ScriptRunner } from '../redis/scripts/scripts.js';
import { shownUrl } from '../redis/slots.js';
import { isCluster, type RedisTarget } from '../redis/target.js';
import { type Keys, makeKeys } from '../store/core/keys.js';
import type { Secrets } from '../store/core/secrets.js';
import { createStore, type Store } from '../store/store.js';
import { checkPartitions, checkSettings, noteSecrets, openSecrets, StartError } from './installation.js';
import { type OwnNode, ownNode } from './own_node.js';
import { postgresFigures, tellPostgres } from './postgres_events.js';
import { redisFigures, tellHistories } from './redis_events.js';
import { createRing, type Ring } from './ring.js';
import { checkSchemas, openShards, shardUrls } from './shards.js';

export { StartError };

export interface Backends {
  readonly config: Config;
  /** Id of the installation. */
  readonly installation: string;
  readonly log: Logger;
  /** The control database. */
  readonly pool: Pool;
  /** Databases of the tables that flushers write. */
  readonly shards: Shards;
  readonly connection: RedisServers;
  readonly runner: ScriptRunner;
  readonly recovery: Recovery;
  readonly keys: Keys;
  readonly hints: Hints;
  readonly secrets: Secrets;
  readonly ring: Ring;
  readonly store: Store;
  readonly files: Files;
  /** Why uploaded files cannot be written now; null when they can. */
  readonly filesProblem: () => Promise<string | null>;
  /** Whether this is a drill: nothing is sent to webhooks and browsers. */
  readonly held: () => boolean;
  readonly wakeQueue: WakeQueue;
  /** Metrics of the roles in this process. */
  readonly figures: Figure[];
  readonly troubles: Troubles;
  /** What this process reports to the others, once it serves. */
  readonly node: OwnNode;
  /** Traces of this process; absent when traces are off. */
  readonly traces: Traces | undefined;
  /** Id of the management bot. */
  readonly managementBot: number;
  close(): Promise<void>;
}

/** Consequences of a task's failure because Redis, Postgres or time is short, by task. Logged with the failure. */
const meaning = {
  wakeQueue:
    'a wake-up of a delivery worker was late, repeated or lost: no update is lost, a sweep finds it within a second',
  background: 'background work is late: nothing is lost, this or another process retries it within seconds',
};

/** Whether Redis or Postgres was unavailable, slow or full, so that the call may be repeated. */
export const isLate = (error: unknown): boolean =>
  error instanceof ApiError && (error.kind === 'unavailable' || error.kind === 'too_many_requests');

/** Whether waiting cannot help: wrong settings and versions are final, while a server that is unavailable may return. */
const isFinal = (error: unknown) =>
  error instanceof StartError ||
  (error instanceof RedisCheckError && !error.away) ||
  (error instanceof IdentityError && !error.passing);

/** Why a Postgres server was refused, if that caused the error. */
function refusalIn(error: unknown): string | undefined {
  for (let at = error; at instanceof Error; at = at.cause) if (at instanceof RefusedServer) return at.message;
  return undefined;
}

type Patience = <T>(what: string, attempt: () => Promise<T>) => Promise<T>;

/** Retries with jittered exponential backoff, until `msMax` after creation. Error: StartError with the last reason. */
function createPatience(log: Logger, msMax: number): Patience {
  const deadline = performance.now() + msMax;
  return async (what, attempt) => {
    for (let tries = 0; ; tries++) {
      try {
        return await attempt();
      } catch (error) {
        if (isFinal(error)) throw error;
        const reason = refusalIn(error) ?? ((error as Error).message || (error as { code?: string }).code);
        if (performance.now() > deadline)
          throw new StartError(`${what} was not available within ${msMax / 1_000} s (START_MS): ${reason}`);
        if (tries === 0) log.warn({ reason }, `waiting for ${what}`);
        const rest = reconnectDelay(tries);
        await sleep(Math.min(rest, Math.max(0, deadline - performance.now()) + 1));
      }
    }
  };
}

/** The Redis servers of a target, and the pub/sub channels on them. */
export function openRedis(
  target: RedisTarget,
  keys: Keys,
  name: string,
  onError: (error: Error) => void,
  admit?: Identity['admit'],
): { connection: RedisServers; hints: Hints } {
  if (!isCluster(target)) {
    return {
      connection: connectRedis({ url: target, name, onError, admit: admit && ((self) => admit(self, 0)) }),
      hints: createHints(target, name, onError),
    };
  }
  const cluster = connectCluster({
    ...{ seeds: target, name, slots: keys.partitions.slots, onError },
    ...(admit ? { admit } : {}),
  });
  return { connection: cluster, hints: createHints(cluster, name, onError) };
}

/**
 * Creates one queue on a single server, several on a cluster. The two kinds may use different keys, because an
 * installation never runs nodes of both kinds.
 */
function openWakeQueue(
  target: RedisTarget,
  keys: Keys,
  name: string,
  onError: (error: unknown) => void,
): WakeQueue {
  const { count, tag, of } = keys.partitions;
  const shards = !isCluster(target) ? 1 : Math.min(limits.wake_queue_shards, count);
  return createWakeQueue({
    connect: () => connectQueueClient(target, name, onError),
    tags: Array.from({ length: shards }, (_, shard) => tag(Math.floor((shard * count) / shards))),
    shardOf: (bot) => Math.floor((of(bot) * shards) / count),
    onError,
  });
}

/** Opens every partition under the current run id of the server that holds it. */
async function openPartitions(connection: RedisServers, recovery: Recovery, count: number): Promise<void> {
  const byRun = new Map<string, number[]>();
  for (let partition = 0; partition < count; partition++) {
    const run = connection.at(partition)?.runId();
    if (run) byRun.set(run, [...(byRun.get(run) ?? []), partition]);
  }
  await Promise.all([...byRun].map(([run, partitions]) => recovery.openAll(partitions, run)));
}

/** Waits until Redis is usable. Errors: IdentityError when Redis belongs to another installation, or `unavailable`. */
async function reachRedis(connection: RedisServers, identity: Identity): Promise<void> {
  await connection.ready(1_000).catch((error: Error) => {
    throw identity.refusal() ?? error;
  });
}

const adopted =
  'the installation now uses an empty Redis: changes that were only in the former Redis are lost';

function tellMemory(log: Logger, full: boolean, server: string): void {
  if (full)
    log.warn({ server }, 'Redis is nearly out of memory: sends and uploads answer 429, other calls continue');
  else log.info({ server }, 'Redis has free memory again: sends and uploads are accepted');
}

/** Creates the management bot before any caller can look for it. */
async function openManagementBot(store: Store, username: string): Promise<number> {
  try {
    return await store.management.ensure(managementIdentity(username));
  } catch (error) {
    if (!(error instanceof ApiError) || error.kind !== 'username_taken') throw error;
    throw new StartError(`the username @${username} is taken: choose another one with MANAGEMENT_BOT`);
  }
}

/**
 * Opens everything a role needs. `adoption` says whether an empty Redis is accepted. Errors: ConfigError, StartError,
 * IdentityError, or the last error of Redis or Postgres.
 */
export async function openBackends(
  given: Config,
  role: string,
  log: Logger,
  adoption: Adoption,
): Promise<Backends> {
  const config = requireAll(given);
  const target = redisOf(given);
  const keys = makeKeys(config.PARTITIONS);
  const patiently = createPatience(log, config.START_MS);
  const check = await patiently('Redis', () => checkRedis(target));
  for (const warning of check.warnings) log.warn(warning);
  await patiently('the schema of Postgres', () =>
    checkSchemas(shardUrls(config), adoption === 'unless_used'),
  );

  const troubles = createTroubles(log);
  const { onError, onDelay } = troubles;
  const node = ownNode();
  const identity = createIdentity({
    ...{ url: config.DATABASE_URL, keys, node: node.id, adoption },
    onRefused: (reason) =>
      log.error({ reason }, 'Redis and Postgres do not belong together: neither is used'),
    onAdopted: (generation) => log.warn({ generation }, adopted),
    onError: onDelay('the identity check of Redis and Postgres', 'the check is repeated within seconds'),
  });
  await patiently('Postgres', () => identity.open((pool) => checkSettings(asDatabase(pool), config)));
  const { connection, hints } = openRedis(target, keys, role, onError('redis'), identity.admit);
  const went = tellPostgres(log);
  const databases = openShards({
    ...{ config, keys, role, node: node.id, connection, runner: () => runner, events: went, identity },
    onError: onError('postgres'),
    onLate: onDelay('the marks and the shard map in Postgres', 'both are read later'),
  });
  const { pool, db } = databases.all[0];
  const traces = config.OTLP_TRACES_URL
    ? (await import('../obs/traces.js')).createTraces({
        ...{ url: config.OTLP_TRACES_URL, ratio: config.OTLP_TRACES_RATIO, role, version },
        onError: onDelay('traces', 'some traces are lost, nothing else'),
      })
    : undefined;
  const histories = tellHistories(log);
  const pauses = createPauses((pause) =>
    log.warn(
      { ...pause },
      'calls on a partition waited or were refused while its slot migrated: nothing is lost',
    ),
  );
  const recovery = createRecovery({
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
    connection,
    bytesMax: config.REDIS_MEMORY_MAX,
    onChange: (full, { url }) => tellMemory(log, full, shownUrl(url)),
  });
  const runner: ScriptRunner = createRunner({
    connection,
    recover: recovery.recover,
    pauses,
    memory,
    reconnectMsMax: role === 'front' ? limits.redis_wait_ms_max : limits.redis_wait_background_ms_max,
    onCall: traces && ((script, ms) => traces.script(script, ms)),
  });
  await patiently('Redis', () => reachRedis(connection, identity));
  const shards: Shards = await patiently('Postgres', databases.follow);
  const secrets = await patiently('Postgres', () => openSecrets(db, config));
  const wakeQueue = openWakeQueue(target, keys, role, onDelay('wake queue', meaning.wakeQueue));
  const urls = config.DATABASE_REPLICA_URLS;
  const replicas =
    /^(front|all)$/.test(role) && urls.length > 0
      ? createReplicas({
          ...{ urls, max: config.POSTGRES_POOL, name: role },
          onError: onDelay('the Postgres replica', 'reads go to the primary'),
        })
      : noReplicas;
  const store = createStore({
    db,
    replicas,
    shards,
    scripts: runner,
    hints,
    keys,
    secrets,
    hotTtlMs: config.HOT_TTL_MS,
    wake: wakeQueue.wake,
    reactorsListed: config.REACTORS_LISTED,
    issuer: providerOf(config)?.issuer,
    botsPerOwner: config.BOTS_PER_OWNER,
    rates: {
      bot: config.RATE_PER_BOT,
      person: config.RATE_PER_PERSON,
      owner: config.RATE_PER_OWNER,
      chat: config.RATE_PER_CHAT,
      address: config.RATE_PER_ADDRESS,
    },
    uploadBounds: { bytesPerDay: config.UPLOAD_BYTES_PER_DAY, bytesTotal: config.UPLOAD_BYTES_TOTAL },
    guessing: { burst: config.GUESSES_BURST, perMinute: config.GUESSES_PER_MINUTE },
    transferConsent: config.TRANSFER_CONSENT,
    notingWindows: config.VAPID_PRIVATE_KEY !== undefined,
    onError: onDelay('background work', meaning.background, isLate),
  });

  const blobs = await openBlobStore(config);
  const files = createFiles({
    blobs,
    measurer: createMeasurer(),
    pepper: secrets.root,
    expiring: config.MEDIA_DAYS !== undefined,
    refusing: memory.anyFull,
    stored: store.uploads,
    onError: onError('files'),
  });

  await patiently('Redis', async () => {
    const first = connection.at(0);
    if (first) await checkPartitions(first.client, keys);
    await openPartitions(connection, recovery, config.PARTITIONS);
  });
  await memory.check();
  memory.start();
  const ring = createRing({ connection, runner, keys, secrets, onError: onError('redis') });
  await ring.join(log);
  await noteSecrets(db, secrets);
  const unwatchIdentity = adoption === 'unless_used' ? identity.watch(pool, connection) : null;
  const managementBot = await patiently('the management bot', () =>
    openManagementBot(store, config.MANAGEMENT_BOT),
  );
  return {
    config,
    installation: identity.id(),
    log,
    ring,
    managementBot,
    pool,
    shards,
    connection,
    runner,
    recovery,
    keys,
    hints,
    secrets,
    store,
    files,
    filesProblem: () => filesProblem(blobs, config),
    held: identity.held,
    wakeQueue,
    figures: [
      ...redisFigures(histories, pauses, identity),
      ...postgresFigures(
        went,
        databases.all.map(({ history }) => history),
        replicas,
      ),
    ],
    troubles,
    node,
    traces,
    async close() {
      await unwatchIdentity?.();
      memory.stop();
      await traces?.stop();
      await ring.leave();
      await files.close();
      await wakeQueue.close();
      hints.close();
      await connection.close();
      await replicas.close();
      await databases.close();
    },
  };
}
