/**
 * Defines the results for administrators: reports of processes, pending work, bots with problems, and the log of
 * administrators' calls.
 */
import { z } from 'zod';
import { ruleLimits } from '../rules/limits.js';
import { wireLimits as limits } from './limits.js';
import { pageOf, retryPolicyResult } from './results.js';
import { deliveryAttempt } from './webhook_results.js';

const count = z.int().min(0);
const ms = z.number().min(0);
const buckets = z
  .array(z.number().min(0))
  .describe('One count per bucket of `bounds_seconds`, and one for larger values');

const call = z.strictObject({
  call: z.string().describe('Method, endpoint or page; `other` combines all less frequent calls'),
  ok: count,
  refused: count.describe('4xx except 429'),
  slowed: count.describe('429'),
  failed: count.describe('5xx'),
  gone: count.describe('Number of clients that disconnected before the answer'),
  times: buckets,
});

const front = z.strictObject({
  open: count.describe('Open requests and streams'),
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
  drains: count.describe('Number of bots whose queues this process delivers'),
  open: count.describe('Deliveries in flight'),
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

/** The fields that process reports of every Petrel version contain. */
const core = {
  id: z.string(),
  role: z.string(),
  host: z.string(),
  pid: z.int(),
  version: z.string(),
  since_ms: z.int().describe('Start time, Unix time in ms'),
  state: z.enum(['serving', 'leaving']),
};

const details = {
  engine: z.string().optional().describe('HTTP engine and its version. Fronts only'),
  loop_p99_ms: ms.describe('99th percentile of the event loop delay over the last seconds'),
  loop_max_ms: ms,
  cpu: ms.describe('Share of one core over the last seconds'),
  memory_bytes: count,
  scripts: buckets.describe('Duration of Redis script calls'),
  front: front.optional(),
  deliver: deliver.optional(),
  flush: flush.optional(),
};

/**
 * A process report. Counters start at 0 when the process starts, so the difference between two reports gives a rate.
 */
export const nodeReport = z.strictObject({ ...core, ...details });
export type NodeReport = z.output<typeof nodeReport>;
export const nodeCore = z.object(core);
export type NodeCore = z.output<typeof nodeCore>;

const node = z
  .strictObject({ ...core, ...z.object(details).partial().shape, reported_ms: ms, silent_ms: ms })
  .meta({ id: 'Node', description: 'A process of the installation, according to its last report.' });

const server = z.strictObject({
  server: z.string(),
  version: z.string(),
  used_bytes: count,
  max_bytes: count.describe('0 when unlimited'),
  appending: z.boolean().describe('Whether the append-only file is on and written without errors'),
  replicas: count,
  clients: count,
  commands_per_second: count,
});

export const overview = z
  .strictObject({
    at_ms: z.int().describe('Unix time in ms'),
    version: z.string(),
    node: z.string().describe('The node that answered this call'),
    bounds_seconds: z.array(z.number()),
    silent_after_ms: z.int(),
    findings: z
      .array(z.strictObject({ bad: z.boolean(), what: z.string(), todo: z.string() }))
      .describe('Problems found, as `petrel doctor` reports them'),
    nodes: z
      .array(node)
      .describe(
        `Up to ${limits.nodes_shown_max} nodes. If the list exceeds ${limits.nodes_report_bytes_max / 1024} KiB, details are omitted`,
      ),
    journal: z
      .strictObject({
        waiting: count,
        fullest: count,
        high_water: count,
        flushed_ms_ago: ms.nullable().describe('null if nothing was written yet'),
        quarantined: count,
      })
      .nullable()
      .describe('null when Redis or Postgres did not answer in time'),
    queues: z
      .strictObject({
        outbox: count.describe('Updates waiting in outboxes to be forwarded to bots'),
        webhooks_due: count.describe('Webhooks with pending or scheduled deliveries'),
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
        ms: ms.describe('Duration of one statement'),
        webhooks: count.describe('Number of webhooks'),
        failing: count.describe('Number of webhooks whose recent deliveries all failed'),
        dead_letters: count.describe(`Counted up to ${ruleLimits.dead_updates_counted_max}`),
      })
      .nullable(),
  })
  .meta({ id: 'Overview', description: 'The state of the installation.' });
export type Overview = z.output<typeof overview>;

const historyPoint = z.strictObject({
  at_ms: z.int().describe('Start of the point, Unix time in ms'),
  calls: count,
  refused: count.describe('4xx except 429'),
  slowed: count.describe('429'),
  failed: count.describe('5xx'),
  times: buckets.describe(
    'Durations of calls: one count per bucket of `bounds_seconds`, and one for larger values. Calls that wait for updates are left out',
  ),
  deliveries: z.record(z.string(), count).describe('Delivery attempts by outcome'),
  lag_ms: ms
    .optional()
    .describe('Age of the oldest change that is not in Postgres. Absent while no flusher reports'),
  redis_bytes: count.optional().describe('Memory used by all Redis servers together'),
});

export const historyRanges = ['1h', '6h', '24h', '7d'] as const;
export type HistoryRange = (typeof historyRanges)[number];

export const history = z
  .strictObject({
    at_ms: z.int().describe('Unix time in ms'),
    step_ms: z.int().describe('Length of a point'),
    span_ms: z.int().describe('Length of the range'),
    ranges: z.array(z.enum(historyRanges)).describe('The ranges that this front can return'),
    bounds_seconds: z.array(z.number()),
    points: z
      .array(historyPoint)
      .describe(
        'Oldest first. A point has the counts of all processes in `step_ms`. Points without a report are missing',
      ),
  })
  .meta({
    id: 'History',
    description: 'How the installation’s figures changed over time. Each figure is a sum over all processes.',
  });
export type History = z.output<typeof history>;

export const rankings = ['pending', 'failures', 'dead_letters'] as const;
export type Ranking = (typeof rankings)[number];

const rankedBot = z
  .strictObject({
    id: z.int().positive(),
    username: z.string(),
    webhook_host: z.string().optional().describe('Absent while the bot polls'),
    pending: count.describe('Pending updates'),
    failing_since: z.int().optional().describe('Unix time in seconds'),
    last_error: z.string().optional(),
    last_error_date: z.int().optional(),
    delivered: count,
    failed: count.describe('Number of all failed attempts so far'),
    dead_letters: count.describe('Number of dead letters that can be replayed'),
  })
  .meta({
    id: 'RankedBot',
    description: 'The numbers of a bot’s pending updates, failures and dead letters.',
  });
export const rankedBots = z.strictObject({ items: z.array(rankedBot) });
export type RankedBot = z.output<typeof rankedBot>;

/** A dead letter without the message's content, which only the bot's owner may see. */
export const operatorLetters = pageOf(
  z
    .strictObject({
      update_id: z.int().positive(),
      type: z.string(),
      reason: z.string().describe('`expired`, `too_large` or `queue_full`'),
      date: z.int().describe('Unix time in seconds when Petrel stopped trying to deliver the update'),
    })
    .meta({ id: 'OperatorDeadLetter', description: 'A dead letter without its content.' }),
);

export const replayedUpdates = z.strictObject({
  queued: count,
  from_update_id: z.int().optional().describe('Id of the first queued update; absent when none was queued'),
  to_update_id: z.int().optional(),
});

const unixSeconds = z.int().describe('Unix time in seconds');
const accountName = {
  id: z.int().positive(),
  username: z.string().optional(),
  name: z.string().describe('Name of a bot in the default language, or first and last name of a person'),
};

export const accountPage = pageOf(
  z.strictObject({ type: z.enum(['bot', 'person']), ...accountName, suspended: z.boolean() }).meta({
    id: 'FoundAccount',
    description: 'A bot or person that an administrator’s search found.',
  }),
);

const perSecond = z.number().min(0).describe('Attempts per second among the attempts of `outcomes`');

const operatorQueue = z
  .strictObject({
    route: z
      .string()
      .optional()
      .describe('Name of the webhook route. Absent if the queue belongs to the bot itself'),
    webhook_host: z.string().optional().describe('Absent while the bot polls'),
    has_custom_certificate: z.boolean(),
    max_connections: z.int().optional(),
    ip_address: z.string().optional(),
    retry_policy: retryPolicyResult.optional(),
    allowed_updates: z.array(z.string()).optional().describe('Absent if the bot gets the default kinds'),
    chat_count: count.optional().describe('Number of chats that the route lists'),
    percent: z.int().optional().describe('Percentage of chats that the route takes'),
    command_count: count.optional().describe('Number of commands that the route lists'),
    pending_update_count: count,
    dead_count: count.describe('Number of updates of this queue that became dead letters so far'),
    failing_date: unixSeconds
      .optional()
      .describe('Time since which all attempts have failed. Absent if the last attempt succeeded'),
    last_error_date: unixSeconds.optional(),
    last_error_message: z.string().optional(),
    next_try_date: unixSeconds
      .optional()
      .describe('Time of the next retry. Absent if no update waits for one'),
    delivered_per_second: perSecond,
    failed_per_second: perSecond,
    latency_p50_ms: count.optional().describe('Of the successes of `outcomes`. Absent without a success'),
    latency_p99_ms: count.optional(),
  })
  .meta({ id: 'OperatorQueue', description: 'The queue of a bot or of one of its webhook routes.' });

const operatorOutcome = z.strictObject({
  route: z.string().optional(),
  delivered: z.boolean(),
  status: z.int().nullable().describe('HTTP status of failures; null for successes, and without an answer'),
  error: z.string().nullable(),
  count: z.int().positive(),
  per_second: z.number().min(0),
  latency_p50_ms: count,
  latency_p99_ms: count,
  last_date: unixSeconds,
});

export const operatorBot = z
  .strictObject({
    ...accountName,
    username: z.string(),
    created_date: unixSeconds,
    state: z
      .enum(['active', 'suspended', 'blocked'])
      .describe('`blocked`: the token leaked, and the bot has no new one'),
    state_date: unixSeconds
      .optional()
      .describe('Time at which the bot was suspended or its token was blocked'),
    owner: z
      .strictObject({ ...accountName, suspended: z.boolean() })
      .optional()
      .describe('Absent if the bot is the management bot'),
    delivered_count: count,
    failed_count: count.describe('Number of failed delivery attempts'),
    dead_count: count.describe('Number of updates that became dead letters so far'),
    dead_letter_count: count.describe('Number of dead letters that can be replayed'),
    queues: z.array(operatorQueue).describe('The queue of the bot, and then those of its routes in order'),
    outcomes: z
      .array(operatorOutcome)
      .describe(
        `The last ${ruleLimits.delivery_successes_kept} successes and ${ruleLimits.delivery_failures_looked_at_max} failures of the last hour by outcome, the most frequent first. At most ${ruleLimits.delivery_outcomes_max} outcomes`,
      ),
    rates: z
      .array(z.strictObject({ kind: z.enum(['bot', 'poll', 'owner', 'chat']), calls: count, seconds: count }))
      .describe('The rate limits in force: `calls` in `seconds`. A kind without a limit is absent'),
    pending_updates_max: count,
    pending_bytes_max: count,
  })
  .meta({ id: 'OperatorBot', description: 'A bot with its owner, state, queues and limits.' });
export type OperatorBot = z.output<typeof operatorBot>;

export const operatorPerson = z
  .strictObject({
    ...accountName,
    created_date: unixSeconds,
    state: z.enum(['active', 'suspended']),
    state_date: unixSeconds.optional().describe('Time at which the person was suspended'),
    bot_count: count,
  })
  .meta({ id: 'OperatorPerson', description: 'A person as administrators see them.' });

/** Delivery attempts without the receivers' answers, which only the bot's owner may see. */
export const operatorAttempts = pageOf(
  deliveryAttempt.omit({ answer: true }).meta({
    id: 'OperatorAttempt',
    description: 'An attempt to deliver an update. The receiver’s answer is not included.',
  }),
);

export const adminCallPage = pageOf(
  z
    .strictObject({
      id: z.int().positive(),
      at: z
        .int()
        .min(0)
        .describe(
          'Unix time of the call in seconds. If the entry combines several calls, the time of the first call',
        ),
      token: z.string().describe('Name of the token, or `ADMIN_TOKEN` for the token from the settings'),
      action: z.string().describe('Verb and path of the call, or the command'),
      target: z.string().describe('Path parameters of the call, and the username if the call names one'),
      address: z.string().describe('Client address; empty for a command'),
      status: z
        .int()
        .optional()
        .describe('HTTP status of the answer. Absent if the outcome of the change is unknown'),
      times: z.int().positive().describe('Number of calls within an hour that this entry combines'),
    })
    .meta({ id: 'AdminCall', description: 'An API call that an administrator made.' }),
);
