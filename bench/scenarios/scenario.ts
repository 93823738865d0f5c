/** What a scenario is: two sides that take turns, and how they are compared. */
import { answerOf, type CallOptions, textOf } from '../../src/loadtest/client.js';
import type { Series } from '../../src/loadtest/series.js';
import type { RedisWatch } from '../site/redis_watch.js';
import type { Site, Target } from '../site/site.js';

/** How much a run makes before it measures. */
export interface Sizes {
  /** Messages that edits go through. Each may be edited once a second, so this bounds the rate that can be measured. */
  readonly messages: number;
  /** Posts that reactions go through. With the twenty people who react they must be many more than the connections. */
  readonly posts: number;
  /** Reactions on the post that stands for a large one. */
  readonly reactions: number;
  /** Direct chats that stand for many. */
  readonly chats: number;
  /** Bots that stand for many. */
  readonly bots: number;
  /** Bots that poll and get nothing. */
  readonly polls: number;
  /** Entries that wait for Postgres when its writing is timed. */
  readonly backlog: number;
  /** Messages whose bytes are counted. */
  readonly entities: number;
  /** Webhook deliveries of a round. */
  readonly deliveries: number;
  /** Updates a second at which their way to a webhook is timed. */
  readonly rate: number;
}

export interface Side {
  readonly target: Target;
  readonly series: Series;
  /** Before and after each load. Throws WrongAnswer unless the server answers as it must. */
  verify(): Promise<void>;
  /** Sets up what stands beside the load, for instance idle polls, and gives what ends it. */
  attend?(): Promise<() => Promise<void>>;
  /** Another program: what it does says nothing about our Redis. */
  readonly foreign?: true;
}

export interface Prepared {
  /** What is compared with: the floor, or the small case. */
  readonly base?: Side;
  readonly subject: Side;
  /** What the report calls the two. */
  readonly labels: readonly [base: string, subject: string];
}

export type Goal =
  | {
      /** Least share of the floor's rate. */
      readonly share: number;
      /** Most CPU time of Redis for a call, in microseconds. */
      readonly redis_us?: number;
    }
  /** Most that a call of the subject may cost in CPU time, as a multiple of the base's. */
  | { readonly growth: number; readonly of: 'server' | 'both' };

export interface Scenario {
  readonly name: string;
  /** What is called, for the report. */
  readonly title: string;
  /** Row of the plan of proof; empty where it has none. */
  readonly proof: string;
  readonly goal: Goal | null;
  /** Versions that each acknowledged call takes, by which Redis itself tells how many calls were applied; 0: not looked at. */
  readonly versions: number;
  /** Where more connections at a time would disturb the order of calls. */
  readonly connectionsMax?: number;
  /** Whether its latency is measured at a fixed rate too. */
  readonly timed?: true;
  prepare(site: Site, watch: RedisWatch, sizes: Sizes): Promise<Prepared>;
}

/** The answer of a target to a path. Throws WrongAnswer for anything but success. */
export const ask = <T>(target: Target, path: string, options?: CallOptions): Promise<T> =>
  answerOf<T>(`${target.baseUrl}${path}`, options);

export const askForText = (target: Target, path: string, options?: CallOptions): Promise<string> =>
  textOf(`${target.baseUrl}${path}`, options);
