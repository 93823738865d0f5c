/** Replays random runs of the models on the real scripts and a real Redis. Replies and states must be the same. */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import type { Script } from '../../src/redis/scripts/contract.js';
import { pack, unpack } from '../../src/store/core/codec.js';
import { bot, callScript, direct, keys, partitionOf, scripts, startClusterNode } from '../lua/world.js';
import { canRun, type Step, simulate } from './spin.js';

const seeds = Array.from({ length: 6 }, (_, i) => i + 1);

let node: Awaited<ReturnType<typeof startClusterNode>>;
let client: Redis;

/** A Redis that can lose its latest writes. Opens a partition under the next incarnation. */
class Replay {
  incarnation = 0;
  runs = 1;
  readonly #meta: string;
  readonly #journal: string;
  #disk = new Map<string, Buffer>();

  constructor(partition: number) {
    this.#meta = keys.meta(partition);
    this.#journal = keys.journal(partition);
  }

  call(name: string, at: Record<string, string | readonly string[]>, args: Record<string, unknown>) {
    return callScript(client, scripts.get(name) as Script, at, { run: `run-${this.runs}`, ...args });
  }

  async recover(): Promise<void> {
    this.incarnation++;
    const at = { meta: this.#meta, journal: this.#journal };
    const args = { expected: `run-${this.runs}`, incarnation: `${this.incarnation}`, post: '0' };
    const more = { high_water: '100', bytes_max: '5000', installation: '' };
    expect(await this.call('partition/recover', at, { ...args, ...more })).toEqual(['ok', 1]);
  }

  /** Performs a step that models share. Returns false for other steps. */
  async environment({ name }: Step): Promise<boolean> {
    if (name === 'recover') await this.recover();
    else if (name === 'sync') {
      this.#disk = new Map();
      for (const key of await client.keys('*')) this.#disk.set(key, (await client.dumpBuffer(key)) as Buffer);
    } else if (name === 'crash') {
      this.runs++;
      await client.flushall();
      for (const [key, value] of this.#disk) await client.restore(key, 0, value);
      this.#disk.clear();
    } else return false;
    return true;
  }
}

/** Reads the fields that a step names. Fails if the model does not print one of them. */
function numbers<K extends string>({ name, of }: Step, ...fields: K[]): Record<K, number> {
  for (const field of fields) expect(of, name).toHaveProperty(field);
  return of as Record<K, number>;
}

async function replayFills(steps: readonly Step[]): Promise<void> {
  const replay = new Replay(partitionOf(direct));
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
  const replay = new Replay(0);
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
  const seen = new Map<string, number>();
  const note = (model: string, steps: readonly Step[]) => {
    for (const { name } of steps) seen.set(`${model} ${name}`, (seen.get(`${model} ${name}`) ?? 0) + 1);
  };

  beforeAll(async () => {
    expect(limits.fill_ticket_ttl_ms).toBeGreaterThanOrEqual(5_000);
    node = await startClusterNode();
    client = node.client;
  });
  afterAll(() => node.stop());

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

  test('the random runs together contain every step of the models', () => {
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
    const wanted = [
      ...fills.map((name) => `fill_tickets ${name}`),
      ...leases.map((name) => `token_lease ${name}`),
    ];
    expect(wanted.filter((name) => !seen.has(name))).toEqual([]);
  });
});
