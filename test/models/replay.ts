/**
 * Code that the replays of models share: a Redis that can lose its latest writes, and a reader for the numbers of a
 * step.
 */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import type { Script } from '../../src/redis/scripts/contract.js';
import { callScript, keys, scripts } from '../lua/world.js';
import type { Step } from './spin.js';

/** A Redis that can lose its latest writes. The replay opens partitions under the next incarnation. */
export class Replay {
  incarnation = 0;
  runs = 1;
  readonly client: Redis;
  readonly #partitions: readonly number[];
  #disk = new Map<string, Buffer>();

  constructor(client: Redis, ...partitions: readonly number[]) {
    this.client = client;
    this.#partitions = partitions;
  }

  call(name: string, at: Record<string, string | readonly string[]>, args: Record<string, unknown>) {
    return callScript(this.client, scripts.get(name) as Script, at, { run: `run-${this.runs}`, ...args });
  }

  /** Calls `partition/recover` for a partition. If the incarnation is 0, the call only reads the state. */
  open(partition: number, incarnation: number, expected = `run-${this.runs}`): Promise<unknown[]> {
    const at = { meta: keys.meta(partition), journal: keys.journal(partition) };
    const args = { expected, incarnation: `${incarnation}`, post: '0' };
    const more = { high_water: '100', bytes_max: '50000', installation: '' };
    return this.call('partition/recover', at, { ...args, ...more });
  }

  async recover(): Promise<void> {
    this.incarnation++;
    for (const partition of this.#partitions)
      expect(await this.open(partition, this.incarnation)).toEqual(['ok', 1]);
  }

  async sync(): Promise<void> {
    this.#disk = new Map();
    for (const key of await this.client.keys('*'))
      this.#disk.set(key, (await this.client.dumpBuffer(key)) as Buffer);
  }

  /** Restores the data of the last `sync`. Without an earlier `sync`, Redis loses all data. */
  async crash(): Promise<void> {
    this.runs++;
    await this.client.flushall();
    for (const [key, value] of this.#disk) await this.client.restore(key, 0, value);
  }

  /** Performs a step that several models have. Returns false for any other step. */
  async environment({ name }: Step): Promise<boolean> {
    if (name === 'recover') await this.recover();
    else if (name === 'sync') await this.sync();
    else if (name === 'crash') {
      await this.crash();
      this.#disk.clear();
    } else return false;
    return true;
  }
}

/** Reads the given fields of a step. Fails if the model did not print one of them. */
export function numbers<K extends string>({ name, of }: Step, ...fields: K[]): Record<K, number> {
  for (const field of fields) expect(of, name).toHaveProperty(field);
  return of as Record<K, number>;
}
