/**
 * Provides random numbers. Components get a `Random` as an option, by default `systemRandom`. Only this file calls
 * random number generators (decision 0056).
 */
import { randomBytes, randomInt, randomUUID } from 'node:crypto';

export interface Random {
  /** Returns a number from 0 to below 1, for jitter and samples. Attackers can predict it. */
  number(): number;

  /** Returns `count` unpredictable bytes. */
  bytes(count: number): Buffer;

  /** Returns an unpredictable whole number from `min` to below `end`. */
  int(min: number, end: number): number;

  uuid(): string;
}

export const systemRandom: Random = {
  number: Math.random,
  bytes: randomBytes,
  int: randomInt,
  uuid: randomUUID,
};
