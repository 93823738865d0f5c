/**
 * Runs the test server: a private Redis and Postgres with temporary data, and all roles in this process. The data are
 * in memory if the system has an in-memory file system.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type Config, rateSettings, readConfig, resolvedEnvironment } from '../config/config.js';
import type { Send } from '../delivery/context.js';
import type { DeliveryWorker } from '../delivery/worker.js';
import { startPostgres } from '../dev/postgres.js';
import type { LocalServer } from '../dev/processes.js';
import { startRedis } from '../dev/redis.js';
import { ensureRedis } from '../dev/redis_install.js';
import { methods } from '../methods/methods.gen.js';
import type { Logger } from '../obs/log.js';
import type { Troubles } from '../obs/troubles.js';
import { migrate } from '../postgres/migrate.js';
import type { Pool } from '../postgres/pool.js';
import { type Random, systemRandom } from '../random.js';
import { createMethodFinder } from '../server/bot_calls.js';
import type { Dispatch } from '../server/dispatch.js';
import type { Keys } from '../store/core/keys.js';
import type { Store } from '../store/store.js';
import { replaceSystemTime, systemTime, type Time } from '../time.js';
import { type ReadingClient, TestClock } from './clock.js';
import { createTestSend } from './deliveries.js';
import { createTestDispatch } from './dispatch.js';
import { Faults } from './faults.js';
import { openFolder } from './folder.js';
import { MovableTime } from './movable_time.js';
import { movedScripts, prepareClock } from './moved_stores.js';
import { Recording } from './recording.js';
import { Worlds } from './worlds.js';

/** Settings that would make the test server use another installation's data. */
const ignored = /^(REDIS_|DATABASE_|FILES_|SHARE_PORT|PRIVATE_REDIS|METRICS_PORT|DEMO_FILE|OTLP_)/;

const hostDefault = '127.0.0.1';

function environmentOf(
  given: Readonly<Record<string, string | undefined>>,
  own: { readonly home: string; readonly redis: string; readonly postgres: string; readonly random: Random },
): Record<string, string | undefined> {
  const { home, redis, postgres, random } = own;
  const kept = Object.entries(given).filter(([name]) => !ignored.test(name));
  const defaults = {
    ...Object.fromEntries(rateSettings.map((name) => [name, '0'])),
    ...{ HOST: hostDefault, GUESSES_BURST: '0', DRAIN_MS: '0', PARTITIONS: '4', FLUSH_INTERVAL_MS: '250' },
    WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8,::1/128',
  };
  return {
    ...defaults,
    ...Object.fromEntries(kept.filter(([, value]) => value)),
    ADMIN_TOKEN: random.bytes(24).toString('hex'),
    TOKEN_PEPPER: random.bytes(32).toString('hex'),
    TOKEN_KEYS: `t1:${random.bytes(32).toString('base64')}`,
    PETREL_HOME: home,
    REDIS_URL: redis,
    DATABASE_URL: postgres,
  };
}

export interface TestServers {
  readonly config: Config;
  /** Stops the servers and removes their data. */
  close(): Promise<void>;
}

/** Starts the private servers and creates the schema. Throws a Refusal. */
export async function openTestServers(
  given: Config,
  log: Logger,
  random: Random = systemRandom,
): Promise<TestServers> {
  const { home, remove } = await openFolder(resolvedEnvironment().HOST || hostDefault, given.PORT);
  const servers: LocalServer[] = [];
  const close = async () => {
    await Promise.all(servers.map((server) => server.stop()));
    remove();
  };
  const dir = (name: string) => {
    const path = join(home, name);
    mkdirSync(path, { recursive: true, mode: 0o711 });
    return path;
  };
  try {
    await ensureRedis((line) => log.info(line));
    const started = await Promise.allSettled([
      startRedis({ dir: dir('redis'), appendfsync: 'no' }),
      startPostgres({ dir: dir('postgres'), durable: false }),
    ]);
    for (const result of started) if (result.status === 'fulfilled') servers.push(result.value);
    for (const result of started) if (result.status === 'rejected') throw result.reason;
    const [redis, postgres] = servers.map(({ url }) => url) as [string, string];
    await prepareClock(postgres);
    await migrate(postgres, () => undefined);
    const config = readConfig(environmentOf(resolvedEnvironment(), { home, redis, postgres, random }));
    return { config, close };
  } catch (error) {
    await close();
    throw error;
  }
}

interface Role {
  stop(): Promise<void>;
}

/** The objects of this process that the endpoints for tests use. */
interface TestBackends {
  readonly store: Store;
  readonly troubles: Troubles;
  readonly pool: Pick<Pool, 'query'>;
  readonly keys: Keys;
  readonly connection: { nodes(): ReadonlyArray<{ readonly client: ReadingClient }> };
}

/** The state that the front's endpoints for tests share with the worker that delivers webhooks. */
export class TestMode {
  readonly #recording: Recording;
  readonly #faults = new Faults();
  readonly #machine: Time;
  readonly #time: MovableTime;
  readonly #delayed: number[] = [];
  #worker: Pick<DeliveryWorker, 'stateOf'> | undefined;
  #worlds: Worlds | undefined;

  constructor(machine = systemTime) {
    this.#machine = machine;
    this.#time = new MovableTime(machine);
    this.#recording = new Recording(this.#time);
  }

  /** Starts the private servers. They and this process get a clock that tests can move. Throws a Refusal. */
  async prepare(given: Config, log: Logger) {
    replaceSystemTime(this.#time);
    return { ...(await openTestServers(given, log)), scripts: movedScripts() };
  }

  /** Starts the role that delivers to webhooks. */
  async startDeliver(
    start: (aroundSend: (send: Send) => Send) => Promise<Role & { readonly worker: DeliveryWorker }>,
  ): Promise<Role> {
    const parts = { recording: this.#recording, faults: this.#faults, time: this.#time };
    const worldOf = (bot: number) => this.#worlds?.ofBot(bot);
    const deliver = await start((send) =>
      createTestSend({ ...parts, delayed: this.#delayed, worldOf }, send),
    );
    this.#worker = deliver.worker;
    return deliver;
  }

  /** Starts a front that also serves the test server's endpoints. Must be called after `startDeliver`. */
  async startFront(
    { store, troubles, pool, keys, connection }: TestBackends,
    startFront: (around: (dispatch: Dispatch) => Dispatch) => Promise<Role>,
  ): Promise<Role> {
    const [node] = connection.nodes();
    if (node === undefined || this.#worker === undefined) throw new Error('startDeliver runs first');
    const clock = new TestClock({
      ...{ time: this.#time, machine: this.#machine, client: node.client, pool, keys },
      ...{ worker: this.#worker, isDelayed: (bot) => this.#delayed.includes(bot) },
    });
    const front = await startFront((inner) => {
      const worlds = new Worlds({ store, dispatch: inner, onError: troubles.onError('worlds') });
      this.#worlds = worlds;
      return createTestDispatch(inner, {
        ...{ worlds, clock, recording: this.#recording, faults: this.#faults, dispatch: inner },
        ...{ time: this.#time, machine: this.#machine, methodNamed: createMethodFinder(methods) },
      });
    });
    await this.#worlds?.refill();
    return {
      stop: async () => {
        await this.#worlds?.stop();
        await front.stop();
      },
    };
  }
}
