/** Defines a scenario: a measured server and a baseline, which alternate, and how they are compared. */
import { answerOf, type CallOptions, textOf } from '../../src/loadtest/client.js';
import type { Series } from '../../src/loadtest/series.js';
import type { RedisWatch } from '../service/redis_watch.js';
import type { Service, Target } from '../service/service.js';

export interface Sizes {
  /**
   * The number of messages that edits cycle through. Each message can be edited once a second, so this is also the
   * highest measurable rate of edits per second.
   */
  readonly messages: number;
  /**
   * The number of posts on which twenty people react. This number times twenty must be much larger than the number of
   * connections, because otherwise a call would remove a reaction before another call has set it.
   */
  readonly posts: number;
  readonly reactions: number;
  readonly chats: number;
  readonly bots: number;
  readonly polls: number;
  readonly backlog: number;
  /** The number of messages in the database that is searched. */
  readonly searched: number;
  readonly entities: number;
  readonly deliveries: number;
  readonly rate: number;
}

export interface Side {
  readonly target: Target;
  readonly series: Series;
  /** Checks the server before and after each load. Throws WrongAnswer unless it answers correctly. */
  verify(): Promise<void>;
  /** Starts background activity, for instance idle polls, before the load. Returns a function that stops it. */
  attend?(): Promise<() => Promise<void>>;
  /** True for another product's server, which does not use our Redis. */
  readonly foreign?: true;
}

export interface Prepared {
  /** The baseline: a minimal server, or the same call on little data. */
  readonly base?: Side;
  readonly subject: Side;
  readonly labels: readonly [base: string, subject: string];
}

export type Goal =
  | {
      readonly share: number;
      /** The maximum CPU time of Redis per call, in µs. */
      readonly redis_us?: number;
    }
  /** The maximum CPU time per call of the measured side, as a multiple of the baseline's CPU time per call. */
  | { readonly growth: number; readonly of: 'server' | 'both' };

export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** The goal's number, such as P2. Empty if the scenario has no goal. */
  readonly proof: string;
  readonly goal: Goal | null;
  /**
   * How many record versions one call assigns. Redis counts versions, and this count shows how many calls were applied.
   * 0 skips this check.
   */
  readonly versions: number;
  /** The maximum number of connections. Set only if more connections would change the order in which the calls run. */
  readonly connectionsMax?: number;
  readonly timed?: true;
  prepare(service: Service, watch: RedisWatch, sizes: Sizes): Promise<Prepared>;
}

/** Calls a path and returns the server's result. Throws WrongAnswer for a failure. */
export const ask = <T>(target: Target, path: string, options?: CallOptions): Promise<T> =>
  answerOf<T>(`${target.baseUrl}${path}`, options);

export const askForText = (target: Target, path: string, options?: CallOptions): Promise<string> =>
  textOf(`${target.baseUrl}${path}`, options);
