/** Tests that the capacity model adds up the costs of given traffic, and that costs above their budget are reported. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { changesOf } from '../../bench/changes.js';
import { withFigures } from '../../infra/build/growing.mjs';
import { capacityText } from '../../src/loadtest/capacity.js';
import {
  type Costs,
  costsSchema,
  type Demand,
  highestRate,
  measuredCosts,
  plan,
} from '../../src/loadtest/capacity_model.js';
import type { Results } from '../../src/loadtest/results.js';

const costs: Costs = {
  schema: 'petrel-costs',
  version: 2,
  made_at: '2026-01-01T00:00:00.000Z',
  petrel: '0.1.0',
  machine: {},
  measured: '',
  calls: {
    sendMessage: {
      server: 50,
      redis: 20,
      flush: 5,
      postgres: 10,
      rows: 1,
      messages: 1,
      reactions: 0,
      aof: 700,
      wal: 900,
    },
    reactions: {
      server: 40,
      redis: 30,
      flush: 5,
      postgres: 10,
      rows: 2,
      messages: 0,
      reactions: 1,
      aof: 500,
      wal: 400,
    },
  },
  delivery: { server: 100, redis: 10 },
  bytes: { message: 500, update: 600, reaction: 60, chat: 1_000, bot: 400, request: 100 },
  stored: { message: 400, reaction: 100 },
  message_text_bytes: 300,
};
const demand: Demand = {
  calls: { sendMessage: 30_000, reactions: 10_000 },
  ...{ bots: 1_000, chats: 10_000, deliveries: 6_000, hot_s: 3_600, waiting_s: 5 },
  ...{ use: 0.5, shard_bytes: 64 * 2 ** 30, database_cores: 8, spare_fronts: 1 },
};

test('the capacity model adds up the costs of all calls', () => {
  const need = plan(costs, demand);
  // 30,000 × 50 µs and 10,000 × 40 µs are 1.9 cores. This needs four fronts that use half a core each.
  expect(need.front_cores).toBeCloseTo(1.9);
  expect(need.fronts).toBe(4 + 1);
  expect(need.redis_cores).toBeCloseTo(0.6 + 0.3 + 0.06);
  expect(need.parts.messages).toBe(30_000 * 3_600 * 500);
  expect(need.parts.requests).toBe(40_000 * 60 * 100);
  // 50 GiB of messages need two servers, each of which uses half of its 64 GiB. The CPU time needs two servers as well.
  expect([need.shards, need.shards_for]).toEqual([2, 'CPU time']);
  expect(need.postgres_rows).toBe(50_000);
  expect(need.workers).toBe(2);
  expect(need.aof_bytes).toBe(30_000 * 700 + 10_000 * 500);
  expect(need.wal_bytes).toBe(30_000 * 900 + 10_000 * 400);
  expect(need.day_bytes).toBe(86_400 * (30_000 * 400 + 10_000 * 100));
  // Postgres needs 0.4 cores, so one server is enough.
  expect(need.databases).toBe(1);
  expect(plan(costs, { ...demand, database_cores: 0.25 }).databases).toBe(4);
  const small = plan(costs, { ...demand, shard_bytes: 8 * 2 ** 30 });
  expect(small.shards_for).toBe('memory');
  expect(() => plan(costs, { ...demand, calls: { getMe: 1 } })).toThrow('no cost was measured for getMe');
});

test('the scarcest resource limits the highest rate of calls', () => {
  const cost = { server: 50, redis: 20, flush: 5, postgres: 10, load: 15 };
  expect(highestRate(cost, 1, 2)).toBe(20_000);
  expect(highestRate({ ...cost, load: 0 }, 2, 2)).toBeCloseTo(2e6 / 85);
  expect(highestRate({ ...cost, redis: 60 }, 3, 64)).toBeCloseTo(1e6 / 60);
});

test('the committed cost file has the form that the model reads', () => {
  const committed = costsSchema.parse(measuredCosts);
  expect(plan(committed, { ...demand, calls: { mix: 1_000, reactions: 100 } }).fronts).toBeGreaterThan(0);
});

test('growing.md shows the measured costs and the figures that the model computes from these costs', () => {
  const page = readFileSync(fileURLToPath(new URL('../../infra/docs/growing.md', import.meta.url)), 'utf8');
  expect(page).toBe(withFigures(page));
  const { calls } = measuredCosts;
  const dearer = {
    ...measuredCosts,
    calls: { ...calls, mix: { ...(calls.mix as Costs['calls'][string]), server: 500 } },
  };
  expect(withFigures(page, dearer)).not.toBe(page);
});

test('`petrel capacity` computes its plan from the built-in costs', () => {
  const main = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
  const args = [main, 'capacity', '--rps', '20000', '--json'];
  const { demand, need } = JSON.parse(spawnSync(process.execPath, args, { encoding: 'utf8' }).stdout);
  expect(demand.calls).toEqual({ mix: 20_000 });
  expect(need).toEqual(plan(measuredCosts, demand));
  expect(capacityText(measuredCosts, demand, need)).toContain(`Redis servers       ${need.shards}`);
});

function run(server: number, p99: number, trips: number): Results {
  const latency = (role: 'base' | 'subject', ms: number) => ({
    scenario: 'getMe',
    role,
    offered: 9,
    ms: { p99: ms },
  });
  return {
    scenarios: [
      {
        name: 'getMe',
        ratio: 0.5,
        cpu_ratio: 0.8,
        growth: { server: null, redis: server / 10, both: null },
        sides: [{ role: 'subject', rate: 100, scripts: 1, cpu: { server, redis: 0 } }],
      },
    ],
    latencies: [latency('base', 1), latency('subject', p99)],
    findings: [{ key: 'trips of getMe', value: trips }],
  } as unknown as Results;
}

test('every cost above its maximum is reported', () => {
  const broken = (after: Results) =>
    changesOf([run(10, 2, 1), run(12, 2, 1)], [after], 0.1)
      .filter((change) => change.broken)
      .map(({ what }) => what);
  expect(broken(run(12, 2.5, 1))).toEqual([]);
  expect(broken(run(12.2, 2.5, 1))).toEqual(['getMe: CPU time of the server per call']);
  expect(broken(run(11, 2.7, 1))).toEqual(['getMe: p99 at half of the rate, relative to the floor']);
  expect(broken(run(11, 2, 1.03))).toEqual(['trips of getMe']);
});

test('the cost of Redis relative to the minimal server is shown, but has no maximum', () => {
  const changes = changesOf([run(10, 2, 1)], [run(20, 2, 1)], 0.1);
  const what = 'getMe: CPU time of Redis relative to the floor';
  expect(changes.find((change) => change.what === what)).toMatchObject({
    ...{ before: 1, after: 2, ratio: 2, limit: null, broken: false },
  });
});
