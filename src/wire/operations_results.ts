/** What operators see of a whole installation: what each process tells of itself, what waits, and which bots need a look. */
import { z } from 'zod';
import { limits } from '../limits.js';
import { pageOf } from './results.js';

const count = z.int().min(0);
const ms = z.number().min(0);
const buckets = z.array(z.number().min(0)).describe('Counts by the bounds of `bounds_seconds`, and beyond');

const call = z.strictObject({
  call: z.string().describe('A method, an endpoint or a page; `other` for all that were called less'),
  ok: count,
  refused: count.describe('4xx but 429'),
  slowed: count.describe('429'),
  failed: count.describe('5xx'),
  gone: count.describe('The client went before the answer'),
  times: buckets,
});

const front = z.strictObject({
  open: count.describe('Requests and streams not yet answered'),
  polls: count,
  streams: count,
  calls: z.array(call),
});

const deliver = z.strictObject({
  outcomes: z.record(z.string(), count),
  dead: z.record(z.string(), count),
  retries: count,
  times: buckets,
  ages: buckets,
  drains: count.describe('Bots in its hands'),
  open: count.describe('Updates that are open to receivers'),
  connections: count,
});

const flush = z.strictObject({
  entries: count,
  rows: count,
  failures: count,
  quarantined: count,
  lag_ms: ms,
  partitions: count,
});

/** What programs of every version tell. */
const core = {
  id: z.string(),
  role: z.string(),
  host: z.string(),
  pid: z.int(),
  version: z.string(),
  since_ms: z.int().describe('When it started, Unix time in ms'),
  state: z.enum(['serving', 'leaving']),
};

const details = {
  engine: z.string().optional().describe('What serves HTTP, and its version; of fronts'),
  loop_p99_ms: ms.describe('Delay of the event loop over the last seconds'),
  loop_max_ms: ms,
  cpu: ms.describe('Share of one core over the last seconds'),
  memory_bytes: count,
  scripts: buckets.describe('Time of calls of scripts in Redis'),
  front: front.optional(),
  deliver: deliver.optional(),
  flush: flush.optional(),
};

/** What a process writes of itself: counters since its start, so that whoever reads them twice has rates. */
export const nodeTold = z.strictObject({ ...core, ...details });
export type NodeTold = z.output<typeof nodeTold>;
/** What is understood of another version's process. */
export const nodeCore = z.object(core);
export type NodeCore = z.output<typeof nodeCore>;

const node = z
  .strictObject({ ...core, ...z.object(details).partial().shape, told_ms: ms, silent_ms: ms })
  .meta({ id: 'Node', description: 'A process of the installation, as it last told of itself.' });

const server = z.strictObject({
  server: z.string(),
  version: z.string(),
  used_bytes: count,
  max_bytes: count.describe('0 for no bound'),
  appending: z.boolean().describe('Whether it writes its append-only file without errors'),
  replicas: count,
  clients: count,
  commands_per_second: count,
});

export const overview = z
  .strictObject({
    at_ms: z.int().describe('Unix time in ms'),
    version: z.string(),
    node: z.string().describe('The node that answers'),
    bounds_seconds: z.array(z.number()),
    silent_after_ms: z.int(),
    findings: z
      .array(z.strictObject({ bad: z.boolean(), what: z.string(), todo: z.string() }))
      .describe('What is not as it should be, as `petrel doctor` has it'),
    nodes: z
      .array(node)
      .describe(
        `At most ${limits.nodes_shown_max}; beyond ${limits.nodes_told_bytes_max / 1024} KiB without details`,
      ),
    journal: z
      .strictObject({
        waiting: count,
        fullest: count,
        high_water: count,
        flushed_ms_ago: ms.nullable().describe('null when nothing was ever written'),
        quarantined: count,
      })
      .nullable()
      .describe('null while it cannot be told'),
    queues: z
      .strictObject({
        outbox: count.describe('Updates that wait to be forwarded to their bots'),
        webhooks_due: count.describe('Webhooks that somebody must look at, now or later'),
        webhooks_overdue: count,
        overdue_ms: ms,
      })
      .nullable(),
    redis: z.array(server).nullable(),
    postgres: z
      .strictObject({
        version: z.string(),
        connections: count,
        connections_max: count,
        ms: ms.describe('Time of one statement'),
        webhooks: count.describe('Webhooks that are set'),
        failing: count.describe('Of these, to which nothing was delivered lately though it was tried'),
        dead_letters: count.describe(`At most ${limits.dead_updates_counted_max} are counted`),
      })
      .nullable(),
  })
  .meta({ id: 'Overview', description: 'How an installation is.' });
export type Overview = z.output<typeof overview>;

export const rankings = ['pending', 'failures', 'dead_letters'] as const;
export type Ranking = (typeof rankings)[number];

const rankedBot = z
  .strictObject({
    id: z.int().positive(),
    username: z.string(),
    webhook_host: z.string().optional().describe('Absent while it polls'),
    pending: count.describe('Updates that wait in its queue'),
    failing_since: z.int().optional().describe('Unix time in seconds'),
    last_error: z.string().optional(),
    last_error_date: z.int().optional(),
    delivered: count,
    failed: count.describe('Attempts that failed, at any time'),
    dead_letters: count.describe('Kept for a replay now'),
  })
  .meta({ id: 'RankedBot', description: 'A bot with what waits for it and what failed.' });
export const rankedBots = z.strictObject({ items: z.array(rankedBot) });
export type RankedBot = z.output<typeof rankedBot>;

/** Without what people wrote: that is for the owner of the bot. */
export const operatorLetters = pageOf(
  z
    .strictObject({
      update_id: z.int().positive(),
      type: z.string(),
      reason: z.string().describe('`expired`, `too_large` or `queue_full`'),
      date: z.int().describe('When it was given up, Unix time in seconds'),
    })
    .meta({ id: 'OperatorDeadLetter', description: 'A dead letter without its content.' }),
);

export const replayedUpdates = z.strictObject({
  queued: count,
  from_update_id: z.int().optional().describe('The first that was queued; absent when none was'),
  to_update_id: z.int().optional(),
});

/** What tells operators of the installation; the roles implement it. */
export interface Operations {
  /** However many look, the stores are asked once a second. */
  overview(): Promise<Overview>;
  /** Bots in the order asked for, at most limits.bots_ranked_max; or the one of this id. */
  bots(ask: { readonly order: Ranking; readonly limit: number; readonly bot?: number }): Promise<RankedBot[]>;
}

export const adminCallPage = pageOf(
  z
    .strictObject({
      id: z.int().positive(),
      at: z.int().min(0).describe('Unix time in seconds; of the first, where several are one entry'),
      token: z.string().describe('Name of the token: ADMIN_TOKEN, or as it was added'),
      action: z.string().describe('Verb and path of the call, or the command'),
      target: z.string().describe('What the path names, and the username that is given'),
      address: z.string().describe('Of the client; empty for a command'),
      status: z.int().optional().describe('Of the answer; absent for a change whose end is not known'),
      times: z.int().positive().describe('How many calls of an hour this entry stands for'),
    })
    .meta({ id: 'AdminCall', description: 'A call of an administrator.' }),
);
