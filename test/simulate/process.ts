/**
 * A simulated process. The store, flusher, delivery worker, sweep and recovery are real, but their servers are
 * simulated.
 */
import type { Send } from '../../src/delivery/context.js';
import type { Outcome } from '../../src/delivery/outcome.js';
import type { WakeQueue } from '../../src/delivery/wake_queue.js';
import { DeliveryWorker } from '../../src/delivery/worker.js';
import { createFlusher } from '../../src/journal/flusher.js';
import { Recovery } from '../../src/journal/recovery.js';
import { oneShard } from '../../src/postgres/shards.js';
import { asDatabase } from '../../src/postgres/sql.js';
import type { Script } from '../../src/redis/scripts/contract.js';
import { Runner } from '../../src/redis/scripts/scripts.js';
import type { Keys } from '../../src/store/core/keys.js';
import type { Secrets } from '../../src/store/core/secrets.js';
import { createStore, type Store } from '../../src/store/store.js';
import type { SimulatedPostgres } from './postgres.js';
import { SimulatedConnection, type SimulatedRedis } from './redis.js';
import { type Choice, type Owner, ProcessTime, type Scheduler } from './scheduler.js';
import { SeededRandom } from './seeded_random.js';

export type Role = 'front' | 'deliver' | 'flush';

export interface World {
  readonly scheduler: Scheduler;
  readonly redis: SimulatedRedis;
  readonly postgres: SimulatedPostgres;
  readonly scripts: ReadonlyMap<string, Script>;
  readonly keys: Keys;
  readonly secrets: Secrets;
  readonly network: Network;
  /** How long flushed records stay in Redis. */
  readonly hotTtlMs: number;
  onError(error: unknown): void;
}

/** A request that the receiver has not answered yet. */
export interface Request {
  readonly from: Owner;
  readonly bot: number;
  readonly path: string;
  readonly sentMs: number;
  readonly body: Buffer;
  readonly signal: AbortSignal;
  arrived: boolean;
  /** The receiver answers no earlier than at this time. */
  answerAtMs: number;
  /** Whether the sender was frozen during the request. A sender that was frozen may abort the request too late. */
  tainted: boolean;
  answer(status: number | 'lost'): void;
}

/**
 * Delivers wake-ups, hints and webhook requests, each of which may arrive late. Wake-ups and hints may also be lost.
 */
export class Network {
  requests: Request[] = [];
  readonly #scheduler: Scheduler;
  readonly #hintsLost: number;
  readonly #listeners: Array<{ readonly owner: Owner; readonly check: (bot: number) => Promise<void> }> = [];
  readonly #subscribers = new Map<
    string,
    Set<{ readonly owner: Owner; readonly hear: (hint: Buffer) => void }>
  >();
  #choices: Array<Choice & { readonly owner: Owner }> = [];

  constructor(scheduler: Scheduler, hintsLost: number) {
    this.#scheduler = scheduler;
    this.#hintsLost = hintsLost;
    scheduler.addSource(() => this.#choices.filter(({ owner }) => owner.alive && !owner.frozen));
  }

  forget(owner: Owner): void {
    this.#choices = this.#choices.filter((each) => each.owner !== owner);
    this.requests = this.requests.filter(({ from, arrived }) => from !== owner || arrived);
    for (const set of this.#subscribers.values())
      for (const each of set) if (each.owner === owner) set.delete(each);
  }

  taint(owner: Owner): void {
    for (const request of this.requests) if (request.from === owner) request.tainted = true;
  }

  hint(channel: string, hint: Buffer): void {
    for (const { owner, hear } of this.#subscribers.get(channel) ?? [])
      if (!this.#scheduler.random.chance(this.#hintsLost))
        this.#later(owner, `${owner.name}: hint`, () => hear(hint));
  }

  subscribe(owner: Owner, channel: string, hear: (hint: Buffer) => void): () => void {
    const set = this.#subscribers.get(channel) ?? new Set();
    this.#subscribers.set(channel, set);
    const own = { owner, hear };
    set.add(own);
    return () => set.delete(own);
  }

  wakeQueue(owner: Owner): WakeQueue {
    const { random } = this.#scheduler;
    return {
      works: true,
      wake: (bot: number) => {
        const able = this.#listeners.filter((each) => each.owner.alive);
        if (able.length === 0 || random.chance(0.1)) return;
        // Sometimes runs a job twice, because BullMQ passes a job to another worker if the first worker seems dead.
        for (let copies = random.chance(0.25) ? 2 : 1; copies > 0; copies--) {
          const { owner: to, check } = random.pick(able);
          this.#later(to, `${to.name}: wake-up of bot ${bot}`, () => void check(bot));
        }
      },
      listen: (check: (bot: number) => Promise<void>) => {
        this.#listeners.push({ owner, check });
        return { close: async () => undefined };
      },
    } as unknown as WakeQueue;
  }

  #later(owner: Owner, what: string, run: () => unknown): void {
    const choice = {
      owner,
      what: () => what,
      run: () => {
        this.#choices = this.#choices.filter((each) => each !== choice);
        return run();
      },
    };
    this.#choices.push(choice);
  }
}

const failed: Outcome = {
  kind: 'failed',
  reason: 'closed',
  message: 'Connection closed',
  latencyMs: 1,
} as Outcome;

export class SimulatedProcess implements Owner {
  readonly name: string;
  readonly roles: readonly Role[];
  readonly store: Store;
  readonly time: ProcessTime;
  readonly connection: SimulatedConnection;
  alive = true;
  frozen = false;
  readonly #world: World;

  constructor(world: World, name: string, roles: readonly Role[], driftPpm: number) {
    const { scheduler, redis, postgres, scripts, keys, secrets, network, hotTtlMs } = world;
    this.#world = world;
    this.name = name;
    this.roles = roles;
    const time = new ProcessTime(scheduler, driftPpm);
    const random = new SeededRandom(scheduler.random.int(0, 2 ** 31));
    scheduler.addClock(this, time);
    this.time = time;
    const connection = new SimulatedConnection(this, redis, time, scheduler);
    this.connection = connection;
    const pool = postgres.pool(this);
    const db = asDatabase(pool);
    const shards = oneShard(pool, db, keys.partitions.count);
    const recovery = new Recovery({
      ...{
        shards: () => shards,
        keys,
        connection,
        highWater: 10_000,
        bytesMax: 64 * 1024 ** 2,
        time,
        random,
      },
      runner: () => runner,
    });
    const runner: Runner = new Runner({
      ...{ connection, scripts, time, random },
      recover: (partition, runId) => recovery.recover(partition, runId),
    });
    const wakeQueue = network.wakeQueue(this);
    const hints = {
      listen: async (channel: string, hear: (hint: Buffer) => void) => network.subscribe(this, channel, hear),
      close: () => undefined,
    };
    this.store = createStore({
      ...{ db, shards, keys, secrets, time, random, hotTtlMs, reactorsListed: 10 },
      scripts: runner,
      hints,
      wake: (bot) => wakeQueue.wake(bot),
      onError: world.onError,
    });
    if (roles.includes('flush'))
      createFlusher({
        ...{ connection, runner, shards, keys, hints, hotTtlMs, time, random },
        ...{ intervalMs: 100, id: random.uuid(), onError: world.onError },
      }).start();
    if (!roles.includes('deliver')) return;
    this.store.auth.start().catch(world.onError);
    this.store.sweep.start();
    new DeliveryWorker({
      ...{ store: this.store, wakeQueue, signer: { service: 'Petrel' }, time, random, send: this.#send },
      onError: world.onError,
    }).start();
  }

  /** Ends the process. Redis may still run some commands that the process has sent. */
  async crash(): Promise<void> {
    const { scheduler, postgres, network } = this.#world;
    this.alive = false;
    scheduler.removeClock(this);
    this.connection.cut('some');
    await this.connection.close();
    postgres.forget(this);
    network.forget(this);
  }

  readonly #send: Send = (receiver, _headers, body, signal) =>
    new Promise((resolve) => {
      const { network } = this.#world;
      const request: Request = {
        ...{
          from: this,
          bot: Number(receiver.target.path.split('/')[1]),
          path: receiver.target.path,
          sentMs: this.#world.scheduler.nowMs,
          body,
          signal,
          arrived: false,
          answerAtMs: 0,
          tainted: false,
        },
        answer: (status) => {
          signal.removeEventListener('abort', aborted);
          network.requests = network.requests.filter((each) => each !== request);
          if (!this.alive) return;
          const answered = {
            ...{ kind: 'answered', status: Number(status), retryAfterMs: undefined, body: Buffer.alloc(0) },
            ...{ truncated: false, latencyMs: 1, address: '' },
          };
          resolve(status === 'lost' ? failed : (answered as unknown as Outcome));
        },
      };
      const aborted = () => request.answer('lost');
      network.requests.push(request);
      signal.addEventListener('abort', aborted);
    });
}
