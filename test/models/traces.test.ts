/**
 * Replays random runs of the models on the real scripts and a real Redis. The replies and states must equal those of
 * the model.
 */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { createPool, type Pool, statement } from '../../src/postgres/pool.js';
import { pack, unpack } from '../../src/store/core/codec.js';
import { bot, direct, keys, partitionOf, startClusterNode } from '../lua/world.js';
import { migratedDatabase } from '../support/servers.js';
import { IncarnationReplay } from './incarnation_replay.js';
import { OutboxReplay } from './outbox_replay.js';
import { numbers, Replay } from './replay.js';
import { canRun, type Step, simulate } from './spin.js';

const seeds = Array.from({ length: 6 }, (_, i) => i + 1);
/** The seeds of random runs that contain refusals. The runs of most other seeds contain none. */
const seedsWithRefusals = { outbox: [1, 6, 15, 17, 20, 32], incarnations: [3, 7, 16, 56, 122, 240] };

let node: Awaited<ReturnType<typeof startClusterNode>>;
let client: Redis;
let database: Awaited<ReturnType<typeof migratedDatabase>>;
let pool: Pool;

async function replayFills(steps: readonly Step[]): Promise<void> {
  const replay = new Replay(client, partitionOf(direct));
  const record = keys.bot(bot);
  const at = { meta: keys.meta(partitionOf(direct)), record, ticket: keys.ticket(record) };
  await replay.recover();
  for (const step of steps) {
    if (await replay.environment(step)) continue;
    switch (step.name) {
      case 'read': {
        const { token, found, version, ticket } = numbers(step, 'token', 'found', 'version', 'ticket');
        const [status, value] = await replay.call('control/read', at, {
          token: `T${token}`,
          ttl_ms: '60000',
        });
        if (!found) expect([status, value]).toEqual(['missing', `${replay.incarnation} T${ticket}`]);
        else
          expect([status, unpack<number[]>(Buffer.from(value as string, 'latin1'))[0]]).toEqual([
            'ok',
            version,
          ]);
        break;
      }
      case 'write': {
        const { token, under, refresh, version, written } = numbers(
          step,
          ...(['token', 'under', 'refresh', 'version', 'written'] as const),
        );
        const args = {
          token: token ? `${under} T${token}` : '',
          refresh: refresh === 1,
          version: `${version}`,
        };
        const channel = keys.userChannel(bot);
        const more = { fields: pack('x'), count: '3', ttl_ms: '60000' };
        expect(await replay.call('control/write', { ...at, channel }, { ...args, ...more })).toEqual([
          'ok',
          written,
        ]);
        break;
      }
      case 'forget':
        await replay.call('control/forget', { entries: [at.record, at.ticket] }, {});
        break;
      case 'expire copy':
        await client.del(at.record);
        break;
      case 'expire ticket':
        await client.del(at.ticket);
        break;
      case 'state': {
        const { version, under, ticket } = numbers(step, 'version', 'under', 'ticket');
        const copy = await client.getBuffer(at.record);
        expect(copy === null ? [0, 0] : unpack<number[]>(copy).slice(0, 2)).toEqual([version, under]);
        expect(await client.get(at.ticket)).toBe(ticket ? `T${ticket}` : null);
        break;
      }
      default:
        throw new Error(`unknown step ${step.name}`);
    }
  }
}

async function replayLeases(steps: readonly Step[]): Promise<void> {
  const replay = new Replay(client, 0);
  const at = {
    meta: keys.meta(0),
    nodes: keys.authNodes(),
    revoked: keys.authRevoked(),
    channel: keys.authChannel(),
  };
  await replay.recover();
  for (const step of steps) {
    if (await replay.environment(step)) continue;
    switch (step.name) {
      case 'renew': {
        const { front, known, from, acked, epoch, incarnation, revoked } = numbers(
          step,
          ...(['front', 'known', 'from', 'acked', 'epoch', 'incarnation', 'revoked'] as const),
        );
        const args = { node: `f${front}`, known: `${known}`, acked: `${from}`, lease_ms: '1000' };
        const [status, ...values] = await replay.call('auth/renew', at, args);
        expect([status, ...values.slice(0, 2)]).toEqual(['ok', incarnation, epoch]);
        expect((values[2] as unknown[]).length > 0).toBe(revoked === 1);
        expect((await client.hget(at.nodes, `f${front}`))?.split(' ')[0]).toBe(`${acked}`);
        break;
      }
      case 'revoke': {
        const { epoch, incarnation } = numbers(step, 'epoch', 'incarnation');
        expect(await replay.call('auth/revoke', at, { subjects: 'bot:1' })).toEqual([
          'ok',
          incarnation,
          epoch,
        ]);
        break;
      }
      case 'pending': {
        const { epoch, under, pending } = numbers(step, 'epoch', 'under', 'pending');
        const args = { epoch: `${epoch}`, incarnation: `${under}`, gone: [] };
        expect((await replay.call('auth/pending', at, args)).slice(0, 2)).toEqual(['ok', pending]);
        break;
      }
      default:
        throw new Error(`unknown step ${step.name}`);
    }
  }
}

describe.skipIf(!canRun('spin', 'gcc'))('traces', () => {
  const seen = new Set<string>();
  const note = (model: string, steps: readonly Step[]) => {
    for (const { name, of } of steps) {
      seen.add(`${model} ${name}`);
      if (of.moved === 1) seen.add(`${model} ${name} moved`);
      if (of.refused === 1 || of.raised === 0) seen.add(`${model} ${name} refused`);
    }
  };

  beforeAll(async () => {
    expect(limits.fill_ticket_ttl_ms).toBeGreaterThanOrEqual(5_000);
    node = await startClusterNode();
    client = node.client;
    database = await migratedDatabase();
    pool = createPool({ url: database.url, max: 1, name: 'test' });
  });
  afterAll(async () => {
    await node?.stop();
    await pool?.close();
    await database?.drop();
  });

  test.each(seeds)('the scripts of control records do the same as run %i of their model', async (seed) => {
    await client.flushall();
    const steps = await simulate('fill_tickets', seed, ['OPERATIONS=20', 'VERSIONS=12', 'CRASHES=3']);
    note('fill_tickets', steps);
    await replayFills(steps);
  });

  test.each(seeds)('the scripts of the token lease do the same as run %i of their model', async (seed) => {
    await client.flushall();
    const steps = await simulate('token_lease', seed, ['CRASHES=1']);
    note('token_lease', steps);
    await replayLeases(steps);
  });

  test.each(seedsWithRefusals.outbox)(
    'the scripts of the outbox do the same as run %i of their model',
    async (seed) => {
      await client.flushall();
      const steps = await simulate('outbox', seed, ['SENDS=6', 'CRASHES=2']);
      note('outbox', steps);
      const replay = new OutboxReplay(client);
      await replay.begin();
      for (const step of steps) await replay.step(step);
    },
  );

  test.each(seedsWithRefusals.incarnations)(
    'scripts and statements do the same as run %i of their model',
    async (seed) => {
      await client.flushall();
      await pool.query(statement('test_empty', 'truncate messages, chat_sequences, partitions'));
      const steps = await simulate('incarnations', seed, ['CHANGES=3', 'CRASHES=3']);
      note('incarnations', steps);
      const replay = new IncarnationReplay(client, pool);
      for (const step of steps) await replay.step(step);
    },
  );

  test('the random runs cover every step of the models', () => {
    const fills = [
      'read',
      'write',
      'forget',
      'expire copy',
      'expire ticket',
      'state',
      'sync',
      'crash',
      'recover',
    ];
    const leases = ['renew', 'revoke', 'pending', 'sync', 'crash', 'recover'];
    const outbox = ['send', 'read', 'accept', 'refuse', 'trim', 'state', 'sync', 'crash', 'recover'];
    const incarnations = ['append', 'fill', 'read', 'commit', 'trim', 'forget', 'raise', 'open', 'expire'];
    const wanted = [
      ...fills.map((name) => `fill_tickets ${name}`),
      ...leases.map((name) => `token_lease ${name}`),
      ...outbox.map((name) => `outbox ${name}`),
      ...[...incarnations, 'state', 'rows', 'sync', 'crash'].map((name) => `incarnations ${name}`),
      ...['outbox trim moved', 'incarnations commit refused', 'incarnations raise refused'],
    ];
    expect(wanted.filter((name) => !seen.has(name))).toEqual([]);
  });
});
