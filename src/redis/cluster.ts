/**
 * Connects to the masters of a Redis Cluster, and maps partitions to masters. Refreshes the map every second, and
 * immediately when a server connects, disconnects or redirects a call. Each refresh asks several servers, because an
 * isolated server reports an outdated map. Each refresh also reads the run ids again, because a server may have become
 * a replica and then a master again.
 */
import { type Random, systemRandom } from '../random.js';
import { systemTime, type Time, type Timer } from '../time.js';
import { type Redirected, RedisConnection, type RedisServers } from './connection.js';
import { clusterSlots, readRedirection, readSlots, type SlotRange } from './slots.js';
import { createWaiting } from './waiting.js';

export interface ClusterOptions {
  /** The URLs of some servers in the cluster. The password and protocol of the first URL apply to all servers. */
  readonly seeds: readonly string[];
  readonly name: string;
  readonly slots: readonly number[];
  readonly onError?: ((error: Error) => void) | undefined;
  /**
   * Checks a server before it is used, like `admit` in ConnectOptions. `partition` is the first partition on the
   * server, or null if there is none.
   */
  readonly admit?: ((connection: RedisConnection, partition: number | null) => Promise<boolean>) | undefined;
  readonly time?: Time;
  readonly random?: Random;
}

export interface SlotMap {
  /** Returns null while the master of the slot is unknown. */
  urlAt(slot: number): string | null;
  learn(refusal: string, from: string): void;
  onMove(listener: () => void): void;
}

interface View {
  readonly ok: boolean;
  readonly epoch: number;
  readonly ranges: readonly SlotRange[];
}

const refreshMs = 1_000;
const refreshPauseMs = 50;
/** How long a refresh waits for the slot map from a server. Answers after this time are ignored. */
const viewMsMax = 1_000;
/** How long to stay connected to a server that no longer has slots. Calls to it may still be in flight. */
const unownedMsMax = 10_000;

/** Returns the cluster's slot map as one server reports it. Throws the errors of the connection and of Redis. */
export async function viewFrom(connection: Pick<RedisConnection, 'client' | 'url'>): Promise<View> {
  const [info, slots] = await Promise.all([
    connection.client.cluster('INFO'),
    connection.client.cluster('SLOTS'),
  ]);
  return {
    ok: /^cluster_state:ok/m.test(String(info)),
    epoch: Number(/^cluster_current_epoch:(\d+)/m.exec(String(info))?.[1] ?? 0),
    ranges: readSlots(slots, connection.url),
  };
}

/**
 * Prefers maps from servers that consider the cluster healthy. Among these maps, prefers the map with the highest
 * epoch.
 */
function newest(views: readonly (View | null)[]): View | null {
  const sound = views.filter((view) => view !== null);
  const serving = sound.filter((view) => view.ok);
  return (serving.length > 0 ? serving : sound).reduce<View | null>(
    (best, view) => (best === null || view.epoch > best.epoch ? view : best),
    null,
  );
}

export class RedisCluster implements RedisServers, SlotMap {
  readonly clustered = true;
  readonly #options: ClusterOptions;
  readonly #connections = new Map<string, RedisConnection>();
  /** For each server without partitions, the time at which it lost its last partition, in ms of the monotonic clock. */
  readonly #unownedSince = new Map<string, number>();
  readonly #owners = new Array<RedisConnection | null>(clusterSlots).fill(null);
  readonly #time: Time;
  readonly #random: Random;
  readonly #waiting: ReturnType<typeof createWaiting>;
  readonly #listeners: Array<() => void> = [];
  readonly #timer: Timer;
  #refreshing = false;
  /** True if another refresh was requested while a refresh was running. */
  #again = false;
  #closed = false;

  constructor(options: ClusterOptions) {
    if (options.seeds.length === 0) throw new Error('a cluster needs the address of one of its servers');
    this.#options = options;
    const { time = systemTime, random = systemRandom } = options;
    this.#time = time;
    this.#random = random;
    this.#waiting = createWaiting(time);
    this.#timer = time.every(refreshMs, () => this.#refreshSoon()).unref();
    this.#refreshSoon();
  }

  at(partition: number): RedisConnection | null {
    return this.#owners[this.#options.slots[partition] as number] ?? null;
  }

  nodes(): RedisConnection[] {
    return [...new Set(this.#carrying())].filter((node) => node !== null);
  }

  urlAt(slot: number): string | null {
    return this.#owners[slot]?.url ?? null;
  }

  learn(refusal: string, from: string): void {
    const redirection = readRedirection(refusal, from);
    if (redirection?.kind !== 'MOVED') return;
    const { slot, url } = redirection;
    if (this.#own({ start: slot, end: slot, url })) this.#notifyMoved();
    this.#refreshSoon();
  }

  onMove(listener: () => void): void {
    this.#listeners.push(listener);
  }

  redirect(from: RedisConnection, refusal: string): Redirected | null {
    const redirection = readRedirection(refusal, from.url);
    if (redirection === null) return null;
    const asking = redirection.kind === 'ASK';
    if (!asking) {
      // Reads the redirecting server's run id again, because the server may have become a replica and may now have
      // another replication history.
      void from.reread();
      this.learn(refusal, from.url);
    }
    return { to: this.#connectionTo(redirection.url), asking };
  }

  ready(msMax: number, partition?: number): Promise<void> {
    const needed = () => (partition === undefined ? this.#carrying() : [this.at(partition)]);
    return this.#waiting.until(() => needed().every((node) => node?.reachable()), msMax);
  }

  reachable(): boolean {
    return this.nodes().some((node) => node.reachable());
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#time.cancel(this.#timer);
    await Promise.all([...this.#connections.values()].map((connection) => connection.close()));
  }

  #carrying(): Array<RedisConnection | null> {
    return this.#options.slots.map((slot) => this.#owners[slot] ?? null);
  }

  /**
   * Connects with the credentials of the first seed, because the addresses that a cluster reports contain no
   * credentials.
   */
  #connectionTo(url: string): RedisConnection {
    const known = this.#connections.get(url);
    if (known) return known;
    const { name, onError, admit } = this.#options;
    const firstPartitionOf = (self: RedisConnection) => {
      const first = this.#carrying().indexOf(self);
      return first === -1 ? null : first;
    };
    const connection = new RedisConnection({
      url,
      name,
      onError,
      time: this.#time,
      random: this.#random,
      admit: admit && ((self) => admit(self, firstPartitionOf(self))),
      onChange: () => {
        this.#waiting.wake();
        // Refreshes the slot map, because another server may have replaced the disconnected server.
        if (this.#connections.get(url)?.reachable() === false) this.#refreshSoon();
      },
    });
    this.#connections.set(url, connection);
    return connection;
  }

  #own({ start, end, url }: SlotRange): boolean {
    const owner = this.#connectionTo(url);
    const moved = this.#owners.slice(start, end + 1).some((present) => present !== owner);
    this.#owners.fill(owner, start, end + 1);
    return moved;
  }

  #notifyMoved(): void {
    this.#waiting.wake();
    for (const listener of this.#listeners) listener();
  }

  #apply({ ranges }: View): void {
    const { slots } = this.#options;
    const ours = ranges.filter(({ start, end }) => slots.some((slot) => slot >= start && slot <= end));
    const moved = ours.filter((range) => this.#own(range));
    this.#closeUnowned();
    if (moved.length > 0) this.#notifyMoved();
  }

  #closeUnowned(): void {
    const owning = new Set(this.nodes());
    const now = this.#time.monotonic();
    for (const [url, connection] of this.#connections) {
      const since = this.#unownedSince.get(url);
      if (owning.has(connection)) this.#unownedSince.delete(url);
      else if (since === undefined) this.#unownedSince.set(url, now);
      else if (now - since > unownedMsMax) {
        this.#connections.delete(url);
        this.#unownedSince.delete(url);
        void connection.close();
      }
    }
  }

  async #viewOf(connection: RedisConnection): Promise<View | null> {
    const view = async () => (await Promise.all([viewFrom(connection), connection.reread()]))[0];
    return Promise.race([
      view().catch(() => null),
      this.#time.sleep(viewMsMax, { ref: false }).then(() => null),
    ]);
  }

  async #viewOfSeed(url: string): Promise<View | null> {
    const { name, onError } = this.#options;
    const connection = new RedisConnection({ url, name, onError, time: this.#time, random: this.#random });
    try {
      await connection.ready(2 * viewMsMax);
      return await viewFrom(connection);
    } catch {
      return null;
    } finally {
      await connection.close();
    }
  }

  async #refresh(): Promise<void> {
    const usable = [...this.#connections.values()].filter((connection) => connection.reachable());
    const view =
      newest(await Promise.all(usable.map((connection) => this.#viewOf(connection)))) ??
      newest(await Promise.all(this.#options.seeds.map((url) => this.#viewOfSeed(url))));
    if (view && !this.#closed) this.#apply(view);
  }

  async #refreshSoon(): Promise<void> {
    this.#again = true;
    if (this.#refreshing || this.#closed) return;
    this.#refreshing = true;
    while (this.#again && !this.#closed) {
      this.#again = false;
      await this.#refresh().catch((error: Error) => this.#options.onError?.(error));
      if (this.#again) await this.#time.sleep(refreshPauseMs);
    }
    this.#refreshing = false;
  }
}
