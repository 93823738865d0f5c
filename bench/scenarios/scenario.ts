/** Defines a scenario: two alternating sides and how they are compared. */
import { answerOf, type CallOptions, textOf } from '../../src/loadtest/client.js';
import type { Series } from '../../src/loadtest/series.js';
import type { RedisWatch } from '../site/redis_watch.js';
import type { Site, Target } from '../site/site.js';

/** How much data a run creates before it measures. */
export interface Sizes {
  /** Messages that edits cycle through. Each may be edited once a second, so this bounds the measurable rate. */
  readonly messages: number;
  /** Posts that reactions cycle through. Posts times the twenty people must far exceed the connections. */
  readonly posts: number;
  /** Reactions on the large post. */
  readonly reactions: number;
  /** Direct chats in the scenario with many chats. */
  readonly chats: number;
  /** Bots in the scenario with many bots. */
  readonly bots: number;
  /** Bots with idle polls. */
  readonly polls: number;
  /** Journal entries for measuring write-behind. */
  readonly backlog: number;
  /** Messages for measuring bytes per message. */
  readonly entities: number;
  /** Webhook deliveries per round. */
  readonly deliveries: number;
  /** Updates per second for measuring webhook latency. */
  readonly rate: number;
}

export interface Side {
  readonly target: Target;
  readonly series: Series;
  /** Runs before and after each load. Throws WrongAnswer unless the server answers correctly. */
  verify(): Promise<void>;
  /** Starts a background for the load, for instance idle polls. Returns the function that stops it. */
  attend?(): Promise<() => Promise<void>>;
  /** Another program, which does not use our Redis. */
  readonly foreign?: true;
}

export interface Prepared {
  /** The baseline: the floor, or the small case. */
  readonly base?: Side;
  readonly subject: Side;
  /** Names of the two in the report. */
  readonly labels: readonly [base: string, subject: string];
}

export type Goal =
  | {
      /** Minimum share of the floor's rate. */
      readonly share: number;
      /** Maximum CPU time of Redis per call, in microseconds. */
      readonly redis_us?: number;
    }
  /** Maximum CPU time per call of the subject, as a multiple of the base's. */
  | { readonly growth: number; readonly of: 'server' | 'both' };

export interface Scenario {
  readonly name: string;
  /** Name of the scenario in the report. */
  readonly title: string;
  /** Row in the list of goals; empty when there is none. */
  readonly proof: string;
  readonly goal: Goal | null;
  /** Versions that one call takes. Redis counts them, which shows how many calls were applied; 0 skips this check. */
  readonly versions: number;
  /** Set when more connections would disturb the order of calls. */
  readonly connectionsMax?: number;
  /** Whether latency is also measured at a fixed rate. */
  readonly timed?: true;
  prepare(site: Site, watch: RedisWatch, sizes: Sizes): Promise<Prepared>;
}

/** A server's answer to a path. Throws WrongAnswer for a failure. */
export const ask = <T>(target: Target, path: string, options?: CallOptions): Promise<T> =>
  answerOf<T>(`${target.baseUrl}${path}`, options);

export const askForText = (target: Target, path: string, options?: CallOptions): Promise<string> =>
  textOf(`${target.baseUrl}${path}`, options);
