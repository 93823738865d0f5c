/**
 * The masters of a Redis Cluster: one connection to each, and a map of which of them carries which partition.
 *
 * The map is read anew each second, and at once when a server comes, goes, or says that a slot is elsewhere. Views of
 * several servers are compared: one that is cut off from the others goes on telling the world as it was. With each view
 * the run id is read again, for a server may have been replica and master again without a word.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { connectRedis, type RedisConnection, type RedisServers } from './connection.js';
import { clusterSlots, readRedirection, readSlots, type SlotRange } from './slots.js';
import { createWaiting } from './waiting.js';

export interface ClusterOptions {
  /** URLs of some of its servers; the password and protocol of the first one hold for all. */
  readonly seeds: readonly string[];
  readonly name: string;
  /** The slot of each partition. */
  readonly slots: readonly number[];
  readonly onError?: (error: Error) => void;
  /** As of one server; `partition` is the first one that it carries, null while it carries none. */
  readonly admit?: (connection: RedisConnection, partition: number | null) => Promise<boolean>;
}

/** Where channels are: what hints need to know of a cluster. */
export interface SlotMap {
  /** URL of the master of a slot; null while none is known. */
  urlAt(slot: number): string | null;
  /** Takes up what a server said when it refused. */
  learn(refusal: string, from: string): void;
  /** Calls the listener whenever a slot has got another master. */
  onMove(listener: () => void): void;
}

export interface RedisCluster extends RedisServers, SlotMap {}

interface View {
  readonly ok: boolean;
  readonly epoch: number;
  readonly ranges: readonly SlotRange[];
}

const lookMs = 1_000;
/** Between two looks that were asked for. */
const lookPauseMs = 50;
/** A view that takes longer is done without. */
const viewMsMax = 1_000;
/** A server without slots keeps its connection this long: calls may be under way. */
const unownedMsMax = 10_000;

/** What a server of a cluster says of all of them. Errors: of the connection, or of Redis. */
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

/** Of several views the one that was told of the latest change. */
function newest(views: readonly (View | null)[]): View | null {
  const sound = views.filter((view) => view !== null);
  const serving = sound.filter((view) => view.ok);
  return (serving.length > 0 ? serving : sound).reduce<View | null>(
    (best, view) => (best === null || view.epoch > best.epoch ? view : best),
    null,
  );
}

/** Connects to every master that carries a partition, now and as they change. */
export function connectCluster({ seeds, name, slots, onError, admit }: ClusterOptions): RedisCluster {
  const [model] = seeds;
  if (model === undefined) throw new Error('a cluster needs the address of one of its servers');
  const connections = new Map<string, RedisConnection>();
  const unownedSince = new Map<string, number>();
  const owners = new Array<RedisConnection | null>(clusterSlots).fill(null);
  const waiting = createWaiting();
  const listeners: Array<() => void> = [];
  let closed = false;
  let looking = false;
  let again = false;

  function firstPartitionOf(connection: RedisConnection): number | null {
    const first = slots.findIndex((slot) => owners[slot] === connection);
    return first === -1 ? null : first;
  }

  /** Servers name each other without a password: what the first seed says holds for all. */
  function connectionTo(url: string): RedisConnection {
    let connection = connections.get(url);
    if (!connection) {
      const onChange = () => {
        waiting.wake();
        // A server that went may have been replaced.
        if (connections.get(url)?.runId() === null) lookSoon();
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

  function tellMoved(): void {
    waiting.wake();
    for (const listener of listeners) listener();
  }

  function apply({ ranges }: View): void {
    // Only what carries a partition of ours is worth a connection.
    const ours = ranges.filter(({ start, end }) => slots.some((slot) => slot >= start && slot <= end));
    let moved = false;
    for (const { start, end, url } of ours) if (own(start, end, url)) moved = true;
    closeUnowned();
    if (moved) tellMoved();
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

  async function look(): Promise<void> {
    const usable = [...connections.values()].filter((connection) => connection.runId() !== null);
    const view =
      newest(await Promise.all(usable.map(viewOf))) ?? newest(await Promise.all(seeds.map(viewOfSeed)));
    if (view && !closed) apply(view);
  }

  function lookSoon(): void {
    again = true;
    if (looking || closed) return;
    looking = true;
    (async () => {
      while (again && !closed) {
        again = false;
        await look().catch((error: Error) => onError?.(error));
        if (again) await sleep(lookPauseMs);
      }
      looking = false;
    })();
  }

  const timer = setInterval(lookSoon, lookMs);
  timer.unref();
  lookSoon();

  function nodes(): RedisConnection[] {
    return [...new Set(slots.map((slot) => owners[slot] ?? null))].filter((node) => node !== null);
  }

  function learn(refusal: string, from: string): void {
    const redirection = readRedirection(refusal, from);
    if (redirection?.kind !== 'MOVED') return;
    if (own(redirection.slot, redirection.slot, redirection.url)) tellMoved();
    lookSoon();
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
      // It may have become a replica, under another history.
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
