/** One test case: a call to a script and its expected result. */
import type { Redis } from 'ioredis';
import type { ScriptName } from '../../src/redis/scripts/scripts.gen.js';
import type { Seed } from './world.js';

export interface Case {
  readonly script: ScriptName;
  readonly what: string;
  readonly seeds?: readonly Seed[];
  readonly keys: Readonly<Record<string, string | readonly string[]>>;
  readonly args: Readonly<Record<string, unknown>>;
  readonly answer: readonly unknown[];
  /** The keys that change, without their hash tags. A refusal changes no key. */
  readonly changes?: readonly string[];
  readonly after?: (client: Redis) => Promise<void>;
}
