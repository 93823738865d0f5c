/**
 * The masters of a Redis Cluster: one connection to each, and a map from partitions to masters.
 *
 * The map is refreshed every second, and at once when a server connects, disconnects, or redirects a call. Views of
 * several servers are compared, because an isolated server reports an outdated one. Each refresh also rereads the run
 * ids, because a server may have become a replica and a master again unnoticed.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { connectRedis, type RedisConnection, type RedisServers } from './connection.js';
import { clusterSlots, readRedirection, readSlots, type SlotRange } from './slots.js';
import { createWaiting } from './waiting.js';

export interface ClusterOptions {
  /** URLs of some of its servers. The password and protocol of the first apply to all. */
  readonly seeds: readonly string[];
  readonly name: string;
  /** The slot of each partition. */
  readonly slots: readonly number[];
  readonly onError?: (error: Error) => void;
  /** As in ConnectOptions. `partition` is the first partition the server carries; null if none. */
  readonly admit?: (connection: RedisConnection, partition: number | null) => Promise<boolean>;
}

/** Maps cluster slots to masters, for hint subscriptions. */
export interface SlotMap {
  /** URL of a slot's master; null while unknown. */
  urlAt(slot: number): string | null;
  /** Updates the map from a server's MOVED error. Ignores other errors. */
  learn(refusal: string, from: string): void;
  /** Calls the listener whenever a slot has moved to another master. */
  onMove(listener: () => void): void;
}

export interface RedisCluster extends RedisServers, SlotMap {}

interface View {
  readonly ok: boolean;
  readonly epoch: number;
  readonly ranges: readonly SlotRange[];
}

const refreshMs = 1_000;
/** Minimum time between two requested refreshes. */
const refreshPauseMs = 50;
/** A server that answers more slowly is ignored for this refresh. */
const viewMsMax = 1_000;
/** How long to keep the connection to a server without slots, because calls may be in flight. */
const unownedMsMax = 10_000;

/** One server's view of the cluster. Errors: those of the connection, or of Redis. */
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

/** The view with the highest epoch, preferring servers that consider the cluster healthy. */
function newest(views: readonly (View | null)[]): View | null {
  const sound = views.filter((view) => view !== null);
  const serving = sound.filter((view) => view.ok);
  return (serving.length > 0 ? serving : sound).reduce<View | null>(
    (best, view) => (best === null || view.epoch > best.epoch ? view : best),
    null,
  );
}

/** Connects to every master that carries a partition, and follows changes. */
export function connectCluster({ seeds, name, slots, onError, admit }: ClusterOptions): RedisCluster {
  const [model] = seeds;
  if (model === undefined) throw new Error('a cluster needs the address of one of its servers');
  const connections = new Map<string, RedisConnection>();
  const unownedSince = new Map<string, number>();
  const owners = new Array<RedisConnection | null>(clusterSlots).fill(null);
  const waiting = createWaiting();
  const listeners: Array<() => void> = [];
  let closed = false;
  let refreshing = false;
  let again = false;

  function firstPartitionOf(connection: RedisConnection): number | null {
    const first = slots.findIndex((slot) => owners[slot] === connection);
    return first === -1 ? null : first;
  }

  /** Servers list each other without credentials, so those of the first seed are used for all. */
  function connectionTo(url: string): RedisConnection {
    let connection = connections.get(url);
    if (!connection) {
      const onChange = () => {
        waiting.wake();
        // A disconnected server may have been replaced.
        if (connections.get(url)?.runId() === null) refreshSoon();
      };
      connection = connectRedis({
        ...{ url, name, onChange },
        ...(onError ? { onError } : {}),
        ...(admit ? { admit: (self) => admit(self, firstPartitionOf(self)) } : {}),
      });
      connections.set(url, connection);
    }
    return connection;
  }

  function own(start: number, end: number, url: string): boolean {
    const owner = connectionTo(url);
    let moved = false;
    for (let slot = start; slot <= end; slot++) {
      if (owners[slot] === owner) continue;
      owners[slot] = owner;
      moved = true;
    }
    return moved;
  }

  function notifyMoved(): void {
    waiting.wake();
    for (const listener of listeners) listener();
  }

  function apply({ ranges }: View): void {
    // Connect only to servers that carry a partition.
    const ours = ranges.filter(({ start, end }) => slots.some((slot) => slot >= start && slot <= end));
    let moved = false;
    for (const { start, end, url } of ours) if (own(start, end, url)) moved = true;
    closeUnowned();
    if (moved) notifyMoved();
  }

  function closeUnowned(): void {
    const owning = new Set(nodes());
    const now = performance.now();
    for (const [url, connection] of connections) {
      if (owning.has(connection)) unownedSince.delete(url);
      else if (!unownedSince.has(url)) unownedSince.set(url, now);
      else if (now - (unownedSince.get(url) as number) > unownedMsMax) {
        connections.delete(url);
        unownedSince.delete(url);
        void connection.close();
      }
    }
  }

  async function viewOf(connection: RedisConnection): Promise<View | null> {
    const view = async () => (await Promise.all([viewFrom(connection), connection.reread()]))[0];
    return Promise.race([view().catch(() => null), sleep(viewMsMax, null, { ref: false })]);
  }

  async function viewOfSeed(url: string): Promise<View | null> {
    const connection = connectRedis({ url, name, ...(onError ? { onError } : {}) });
    try {
      await connection.ready(2 * viewMsMax);
      return await viewFrom(connection);
    } catch {
      return null;
    } finally {
      await connection.close();
    }
  }

  async function refresh(): Promise<void> {
    const usable = [...connections.values()].filter((connection) => connection.runId() !== null);
    const view =
      newest(await Promise.all(usable.map(viewOf))) ?? newest(await Promise.all(seeds.map(viewOfSeed)));
    if (view && !closed) apply(view);
  }

  function refreshSoon(): void {
    again = true;
    if (refreshing || closed) return;
    refreshing = true;
    (async () => {
      while (again && !closed) {
        again = false;
        await refresh().catch((error: Error) => onError?.(error));
        if (again) await sleep(refreshPauseMs);
      }
      refreshing = false;
    })();
  }

  const timer = setInterval(refreshSoon, refreshMs);
  timer.unref();
  refreshSoon();

  function nodes(): RedisConnection[] {
    return [...new Set(slots.map((slot) => owners[slot] ?? null))].filter((node) => node !== null);
  }

  function learn(refusal: string, from: string): void {
    const redirection = readRedirection(refusal, from);
    if (redirection?.kind !== 'MOVED') return;
    if (own(redirection.slot, redirection.slot, redirection.url)) notifyMoved();
    refreshSoon();
  }

  const at = (partition: number) => owners[slots[partition] as number] ?? null;
  const usable = (connection: RedisConnection | null) => connection !== null && connection.runId() !== null;
  return {
    clustered: true,
    at,
    nodes,
    urlAt: (slot) => owners[slot]?.url ?? null,
    learn,
    onMove: (listener) => void listeners.push(listener),
    redirect(from, refusal) {
      const redirection = readRedirection(refusal, from.url);
      if (redirection === null) return null;
      if (redirection.kind === 'ASK') return { to: connectionTo(redirection.url), asking: true };
      // The server may have become a replica, with another replication history.
      void from.reread();
      learn(refusal, from.url);
      return { to: connectionTo(redirection.url), asking: false };
    },
    ready: (msMax, partition) =>
      waiting.until(
        () =>
          partition === undefined
            ? slots.every((slot) => usable(owners[slot] ?? null))
            : usable(at(partition)),
        msMax,
      ),
    reachable: () => nodes().some(usable),
    async close() {
      closed = true;
      clearInterval(timer);
      await Promise.all([...connections.values()].map((connection) => connection.close()));
    },
  };
}
