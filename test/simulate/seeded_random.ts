/** Random numbers that depend only on a seed. */
import type { Random } from '../../src/random.js';

export class SeededRandom implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) >>> 0;
  }

  /** Returns a number from 0 to below 1 (mulberry32). */
  number(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  int(min: number, end: number): number {
    return min + Math.floor(this.number() * (end - min));
  }

  bytes(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => this.int(0, 256)));
  }

  uuid(): string {
    return this.bytes(16)
      .toString('hex')
      .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }

  chance(share: number): boolean {
    return this.number() < share;
  }

  pick<T>(of: readonly T[]): T {
    return of[this.int(0, of.length)] as T;
  }
}
