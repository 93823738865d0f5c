/** Writes the tables of `infra/docs/growing.md` from the measured costs and the capacity model. */
import { measuredCosts, plan } from '../../dist/loadtest/capacity_model.js';
import { table, withTable } from './markdown_tables.mjs';

const gb = 2 ** 30;

const mb = (bytes) => (bytes / 2 ** 20).toFixed(1);

const whole = (value) => Math.round(value).toLocaleString('en');

const us = (value) => (value >= 100 ? whole(value) : value.toFixed(1));

/** Calls per second. */
const steps = [1_000, 10_000, 100_000, 1_000_000];

/** The average number of webhook deliveries per call. */
const delivered_share = 0.25;

/** The assumed load at a given rate of calls per second. The document describes the same assumptions in words. */
const demandAt = (rate) => ({
  calls: { mix: rate },
  bots: rate / 2,
  chats: rate * 5,
  deliveries: rate * delivered_share,
  ...{ hot_s: 3_600, waiting_s: 5, use: 0.6, shard_bytes: 32 * gb, database_cores: 8, spare_fronts: 1 },
});

function costsTable(costs) {
  const rows = Object.entries(costs.calls).map(
    ([name, { server, redis, flush, postgres, rows, aof, wal }]) => [
      name === 'mix' ? 'average call of the mix' : `\`${name}\``,
      ...[server, redis, flush, postgres].map(us),
      ...[rows.toLocaleString('en'), whole(aof), whole(wal)],
    ],
  );
  const { server, redis } = costs.delivery;
  return table(
    ['call', 'front', 'Redis', 'flusher', 'Postgres', 'rows', 'AOF', 'WAL'],
    [...rows, ['a webhook delivery', `worker ${us(server)}`, us(redis), '–', '–', '–', '–', '–']],
  );
}

/**
 * Describes what limits growth at a load: the cores and memory that Redis needs, which of them determines the number of
 * Redis masters, and the cores of Postgres if several databases are needed.
 */
function limitOf(need) {
  if (need.shards === 1 && need.fronts <= 2) return 'nothing: one process of each kind, plus one spare front';
  const masters = `Redis: ${need.redis_cores.toFixed(1)} cores and ${whole(need.redis_bytes / gb)} GB; ${need.shards_for} decides`;
  return need.databases > 1 ? `${masters}. Postgres: ${need.postgres_cores.toFixed(1)} cores` : masters;
}

function stepsTable(costs) {
  const rows = steps.map((rate) => {
    const need = plan(costs, demandAt(rate));
    return [
      whole(rate),
      String(need.fronts),
      String(need.workers),
      String(need.flushers),
      String(need.shards),
      String(need.databases),
      whole(need.postgres_rows),
      mb(need.aof_bytes),
      mb(need.wal_bytes),
      whole(need.day_bytes / gb),
      limitOf(need),
    ];
  });
  return table(
    [
      ...['calls/s', 'fronts', 'workers', 'flushers', 'Redis masters', 'databases', 'rows/s'],
      ...['AOF MB/s', 'WAL MB/s', 'GB a day', 'what limits it'],
    ],
    rows,
  );
}

function machineText({ machine, made_at, petrel }) {
  const { cpu, cores, memory_gb, redis, postgres, node } = machine;
  return `Measured on ${made_at.slice(0, 10)} with Petrel ${petrel}: ${cpu}, ${cores} cores, ${memory_gb} GB, Node.js ${node}, Redis ${redis}, PostgreSQL ${postgres}.`;
}

const parts = {
  machine: machineText,
  costs: costsTable,
  steps: stepsTable,
};

/**
 * Returns the document with its tables regenerated. Throws when the marker of a table is missing.
 * @param {string} page
 * @param {import('../../src/loadtest/capacity_model.js').Costs} costs
 */
export const withFigures = (page, costs = measuredCosts) =>
  Object.entries(parts).reduce((text, [name, make]) => withTable(text, name, make(costs)), page);
