/**
 * Records the figures of the last hour for the charts of the operations page. A point of the charts combines the
 * figures of all processes for a few seconds. One Redis hash has up to `history_points_max` points of up to
 * `history_point_bytes_max` bytes. Readers ignore unknown names, because another version may have added them.
 */
import { durationBounds } from '../obs/distribution.js';
import type { CallFigures } from '../obs/requests.js';
import type { Timer } from '../time.js';
import type { History } from '../wire/admin_results.js';
import type { Backends } from './backends.js';
import { parseInfo } from './facts.js';
import { processLimits as limits } from './limits.js';
import type { NodeFigures } from './own_node.js';
import { clockOf } from './redis_clock.js';
import type { Role } from './role.js';

const outcome = 'd:';
const bucket = 't';

export const frontFigures = ({
  ok,
  refused,
  slowed,
  failed,
  gone,
  times,
}: Omit<CallFigures, 'call'>): NodeFigures => ({
  counts: {
    ...{ calls: ok + refused + slowed + failed + gone, refused, slowed, failed },
    ...Object.fromEntries(times.map((count, i) => [`${bucket}${i}`, count])),
  },
});

export const deliveryFigures = (outcomes: Readonly<Record<string, number>>): NodeFigures => ({
  counts: Object.fromEntries(Object.entries(outcomes).map(([name, count]) => [outcome + name, count])),
});

export const flushFigures = (lagMs: number): NodeFigures => ({ levels: { lag_ms: Math.round(lagMs) } });

/** Returns how much memory all Redis servers use, in bytes. */
async function redisBytes({ connection }: Pick<Backends, 'connection'>): Promise<number> {
  const used = await Promise.all(
    connection.nodes().map(async ({ client }) => parseInfo(await client.info('memory')).used),
  );
  return used.reduce((sum, bytes) => sum + bytes, 0);
}

/**
 * Adds this process's figures to the history every `history_step_ms` until it stops. If Redis does not answer, the
 * figures of that time are lost.
 */
export function startHistory(
  backends: Pick<Backends, 'node' | 'time' | 'connection' | 'keys' | 'runner' | 'troubles'>,
): Role {
  const { node, time, connection, keys, runner, troubles } = backends;
  const onError = troubles.onDelay(
    'adding to the history of the operations page',
    'its charts lack some figures of this process',
  );
  let before = new Map<string, number>();
  let timer: Timer | undefined;
  let stopped = false;

  /** Returns the current values of all roles, and how much their counters have grown since the last call. */
  function grown(): string[] {
    const now = new Map<string, number>();
    const parts: string[] = [];
    for (const { counts = {}, levels = {} } of node.figures.map((figures) => figures())) {
      for (const [name, value] of Object.entries(levels)) parts.push(`${name} ${value}`);
      for (const [name, count] of Object.entries(counts)) {
        now.set(name, count);
        const more = count - (before.get(name) ?? 0);
        if (more > 0) parts.push(`+${name} ${more}`);
      }
    }
    before = now;
    return parts;
  }

  const send = (parts: readonly string[]) =>
    runner.call('presence/add_figures', 0, { figures: keys.figures() }, { added: parts.join(' ') });

  /** Adds the figures to the current point. Returns the time in ms until the next point is to be written. */
  async function add(): Promise<number> {
    const parts = grown();
    // Adds nothing before this Redis server has passed its check, because the server may belong to another
    // installation.
    if (!connection.at(0)?.runId()) return limits.history_step_ms;
    const added = await send(parts);
    if (added.status !== 'ok') return limits.history_step_ms;
    // Only one process per point reads the memory usage of Redis, because the command INFO is slow.
    if (added.first === 1) await send([`redis_bytes ${await redisBytes(backends)}`]);
    return added.rest_ms;
  }

  // Each point of the history covers an interval of the Redis clock. Writes in the middle of the interval, so that each
  // point is written exactly once even if a timer fires slightly early or late.
  const round = async (): Promise<void> => {
    const rest = await add().catch((error: Error) => {
      onError(error);
      return limits.history_step_ms;
    });
    if (!stopped) timer = time.after(rest, begin).unref();
  };
  let running = Promise.resolve();
  const begin = () => {
    running = round();
  };
  begin();
  return {
    async stop() {
      stopped = true;
      time.cancel(timer);
      await running;
    },
  };
}

/** Builds a chart point from the figures that were recorded for it. */
export function pointOf(at_ms: number, figures: ReadonlyMap<string, number>): History['points'][number] {
  const count = (name: string) => figures.get(`+${name}`) ?? 0;
  const deliveries = [...figures].flatMap(([name, attempts]) =>
    name.startsWith(`+${outcome}`) ? [[name.slice(outcome.length + 1), attempts] as const] : [],
  );
  const [lag_ms, redis_bytes] = [figures.get('lag_ms'), figures.get('redis_bytes')];
  return {
    at_ms,
    calls: count('calls'),
    refused: count('refused'),
    slowed: count('slowed'),
    failed: count('failed'),
    times: [...durationBounds, Number.POSITIVE_INFINITY].map((_, i) => count(`${bucket}${i}`)),
    deliveries: Object.fromEntries(deliveries),
    ...(lag_ms === undefined ? {} : { lag_ms }),
    ...(redis_bytes === undefined ? {} : { redis_bytes }),
  };
}

const figuresIn = (text: string): ReadonlyMap<string, number> =>
  new Map([...text.matchAll(/(\S+) (\d+)(?= |$)/g)].map(([, name = '', value]) => [name, Number(value)]));

/** Loads the complete points of the last hour that begin after `afterMs`. Throws an error if Redis is unavailable. */
export async function readHistory(
  { connection, keys }: Pick<Backends, 'connection' | 'keys'>,
  afterMs: number,
): Promise<Omit<History, 'ranges'>> {
  const { history_step_ms: step_ms, history_points_max: places } = limits;
  const client = connection.at(0)?.client;
  if (!client) throw new Error('the server of partition 0 is unavailable');
  const at_ms = await clockOf(client);
  // Leaves out the current point, because processes still add figures to it. In Redis, the current point has already
  // replaced the point of an hour ago.
  const current = Math.floor(at_ms / step_ms);
  const first = Math.max(current - places + 1, Math.floor(afterMs / step_ms) + 1);
  const numbers = Array.from({ length: Math.max(0, current - first) }, (_, i) => first + i);
  const texts =
    numbers.length === 0
      ? []
      : await client.hmget(keys.figures(), ...numbers.map((number) => String(number % places)));
  const points = numbers.flatMap((number, i) => {
    const text = texts[i];
    return text?.startsWith(`${number} `)
      ? [pointOf(number * step_ms, figuresIn(text.slice(text.indexOf(' ') + 1)))]
      : [];
  });
  return { at_ms, step_ms, span_ms: places * step_ms, bounds_seconds: [...durationBounds], points };
}
