/** Computes from measured costs how many processes and servers a load needs. Does no I/O. */
import { z } from 'zod';
import measured from './measured_costs.json' with { type: 'json' };

/** What one call costs. CPU times are in µs. */
const callCost = z.object({
  server: z.number(),
  redis: z.number(),
  flush: z.number(),
  postgres: z.number(),
  /** How many rows a call writes to Postgres, and how many messages and reactions it adds. */
  rows: z.number(),
  messages: z.number(),
  reactions: z.number(),
  /** The bytes that a call adds to the append-only file of Redis and to the write-ahead log of Postgres. */
  aof: z.number(),
  wal: z.number(),
});
export type CallCost = z.infer<typeof callCost>;

/** The content of the file that `npm run bench -- --costs <file>` writes. */
export const costsSchema = z.object({
  schema: z.literal('petrel-costs'),
  version: z.literal(2),
  made_at: z.string(),
  petrel: z.string(),
  machine: z.record(z.string(), z.union([z.string(), z.number()])),
  measured: z.string().describe('settings of the measurement: rounds, seconds, connections'),
  calls: z.record(z.string(), callCost).describe('measured at half of the highest rate, where possible'),
  delivery: z
    .object({ server: z.number(), redis: z.number() })
    .describe('µs of CPU time per webhook delivery'),
  bytes: z
    .object({
      message: z.number(),
      update: z.number(),
      reaction: z.number(),
      chat: z.number(),
      bot: z.number(),
      request: z.number(),
    })
    .describe('bytes in Redis, including expiry entries and hash tables'),
  stored: z
    .object({ message: z.number(), reaction: z.number() })
    .describe('bytes of Postgres, indexes included'),
  message_text_bytes: z.number(),
});
export type Costs = z.infer<typeof costsSchema>;

/**
 * The default costs. The bytes on disk (`aof`, `wal`, `stored`) come from a later run with PostgreSQL 18 on another
 * machine, which was too busy to measure times.
 */
export const measuredCosts = measured as Costs;

export interface Demand {
  /** Calls per second by kind of call. The kinds are those of `Costs.calls`. */
  readonly calls: Readonly<Record<string, number>>;
  readonly bots: number;
  readonly chats: number;
  readonly deliveries: number;
  /** How long records stay in Redis after their last use, in seconds. */
  readonly hot_s: number;
  readonly waiting_s: number;
  /** The share of each core, and of the memory of each Redis server, that the plan may use. */
  readonly use: number;
  readonly shard_bytes: number;
  readonly database_cores: number;
  readonly spare_fronts: number;
}

export interface Need {
  readonly fronts: number;
  readonly front_cores: number;
  readonly shards: number;
  readonly shards_for: 'CPU time' | 'memory';
  readonly redis_cores: number;
  readonly redis_bytes: number;
  readonly parts: Readonly<
    Record<'messages' | 'updates' | 'reactions' | 'chats' | 'bots' | 'requests', number>
  >;
  readonly flushers: number;
  readonly flush_cores: number;
  readonly postgres_rows: number;
  readonly postgres_cores: number;
  /**
   * The bytes written per second to append-only files (`aof_bytes`) and to write-ahead logs (`wal_bytes`), and the
   * daily growth of tables and indexes in bytes (`day_bytes`). Replicas are not included.
   */
  readonly aof_bytes: number;
  readonly wal_bytes: number;
  readonly day_bytes: number;
  readonly databases: number;
  readonly workers: number;
  readonly worker_cores: number;
}

const request_s = 60;
const day_s = 86_400;
const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

export function plan(costs: Costs, demand: Demand): Need {
  const { calls, use, hot_s } = demand;
  const kinds = Object.entries(calls).map(([kind, rate]) => {
    const cost = costs.calls[kind];
    if (!cost)
      throw new Error(`no cost was measured for ${kind}: only for ${Object.keys(costs.calls).join(', ')}`);
    return { kind, rate, cost };
  });
  const cores = (of: keyof CallCost) => sum(kinds.map(({ rate, cost }) => (rate * cost[of]) / 1e6));
  const { deliveries } = demand;
  const { bytes } = costs;
  const made = (what: 'messages' | 'reactions') => sum(kinds.map(({ rate, cost }) => rate * cost[what]));
  const written = (what: 'aof' | 'wal') => sum(kinds.map(({ rate, cost }) => rate * cost[what]));
  const writes = sum(kinds.map(({ rate, cost }) => (cost.rows > 0 ? rate : 0)));
  const parts = {
    messages: made('messages') * hot_s * bytes.message,
    updates: deliveries * demand.waiting_s * bytes.update,
    reactions: made('reactions') * hot_s * bytes.reaction,
    chats: demand.chats * bytes.chat,
    bots: demand.bots * bytes.bot,
    requests: writes * request_s * bytes.request,
  };
  const redis_bytes = sum(Object.values(parts));
  const redis_cores = cores('redis') + (deliveries * costs.delivery.redis) / 1e6;
  const worker_cores = (deliveries * costs.delivery.server) / 1e6;
  const forCpu = Math.ceil(redis_cores / use);
  const forMemory = Math.ceil(redis_bytes / (demand.shard_bytes * use));
  const count = (needed: number) => Math.ceil(needed / use);
  return {
    fronts: Math.max(1, count(cores('server'))) + demand.spare_fronts,
    front_cores: cores('server'),
    shards: Math.max(1, forCpu, forMemory),
    shards_for: forMemory > forCpu ? 'memory' : 'CPU time',
    redis_cores,
    redis_bytes,
    parts,
    flushers: Math.max(1, count(cores('flush'))),
    flush_cores: cores('flush'),
    postgres_rows: sum(kinds.map(({ rate, cost }) => rate * cost.rows)),
    postgres_cores: cores('postgres'),
    aof_bytes: written('aof'),
    wal_bytes: written('wal'),
    day_bytes: day_s * (made('messages') * costs.stored.message + made('reactions') * costs.stored.reaction),
    databases: Math.max(1, count(cores('postgres') / demand.database_cores)),
    workers: deliveries > 0 ? Math.max(1, count(worker_cores)) : 0,
    worker_cores,
  };
}

/**
 * Returns the highest rate of one kind of call on a single machine that runs all processes and the load generator. The
 * rate is limited by the fronts, by the single thread of Redis, or by all cores together. Costs are in µs per call.
 */
export function highestRate(
  cost: Readonly<Record<'server' | 'redis' | 'flush' | 'postgres' | 'load', number>>,
  fronts: number,
  cores: number,
): number {
  const all = cost.server + cost.redis + cost.flush + cost.postgres + cost.load;
  return Math.min((Math.min(fronts, cores) * 1e6) / cost.server, 1e6 / cost.redis, (cores * 1e6) / all);
}
