/** Defines a scenario: two alternating sides and how they are compared. */
import { answerOf, type CallOptions, textOf } from '../../src/loadtest/client.js';
import type { Series } from '../../src/loadtest/series.js';
import type { RedisWatch } from '../service/redis_watch.js';
import type { Service, Target } from '../service/service.js';

export interface Sizes {
  /**
   * The number of messages that edits cycle through. Each message can be edited once a second, so this number is also
   * the maximum measurable rate of edits per second.
   */
  readonly messages: number;
  /**
   * The number of posts that reactions cycle through. There are twenty people. The number of posts times twenty must be
   * much larger than the number of connections.
   */
  readonly posts: number;
  readonly reactions: number;
  readonly chats: number;
  readonly bots: number;
  readonly polls: number;
  readonly backlog: number;
  /** The number of messages that searches read from. */
  readonly searched: number;
  readonly entities: number;
  readonly deliveries: number;
  readonly rate: number;
}

export interface Side {
  readonly target: Target;
  readonly series: Series;
  /** Runs before and after each load. Throws WrongAnswer unless the server answers correctly. */
  verify(): Promise<void>;
  /** Starts background activity for the load, for instance idle polls. Returns the function that stops it. */
  attend?(): Promise<() => Promise<void>>;
  /** True for a server of another product, which does not use our Redis. */
  readonly foreign?: true;
}

export interface Prepared {
  /** The baseline: the floor server, or the small case. */
  readonly base?: Side;
  readonly subject: Side;
  readonly labels: readonly [base: string, subject: string];
}

export type Goal =
  | {
      readonly share: number;
      /** The maximum CPU time of Redis per call, in microseconds. */
      readonly redis_us?: number;
    }
  /** The maximum CPU time per call on the measured side, as a multiple of the CPU time per call on the base side. */
  | { readonly growth: number; readonly of: 'server' | 'both' };

export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** The number of the goal, such as P2. Empty if the scenario has no goal. */
  readonly proof: string;
  readonly goal: Goal | null;
  /**
   * The number of versions that one call assigns. Redis counts the assigned versions. The count shows how many calls
   * were applied. 0 skips this check.
   */
  readonly versions: number;
  /** The maximum number of connections. Set only if more connections would disturb the order of calls. */
  readonly connectionsMax?: number;
  readonly timed?: true;
  prepare(service: Service, watch: RedisWatch, sizes: Sizes): Promise<Prepared>;
}

/** Returns a server's answer to a path. Throws WrongAnswer for a failure. */
export const ask = <T>(target: Target, path: string, options?: CallOptions): Promise<T> =>
  answerOf<T>(`${target.baseUrl}${path}`, options);

export const askForText = (target: Target, path: string, options?: CallOptions): Promise<string> =>
  textOf(`${target.baseUrl}${path}`, options);
