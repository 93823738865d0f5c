/** Defines the results of the webhook endpoints for owners (behaviour §10). */
import { z } from 'zod';
import { ruleLimits as limits } from '../rules/limits.js';
import { pageOf, update } from './results.js';

const unixSeconds = z.int().describe('Unix time, seconds');

export const signingSecret = z
  .strictObject({
    secret: z.string().describe('`whsec_` and base64'),
    previous_valid_until: unixSeconds
      .optional()
      .describe('Until this time, deliveries are also signed with the former secret'),
  })
  .meta({ id: 'SigningSecret', description: 'The secret that signs a bot’s webhook deliveries.' });

const route = z
  .string()
  .optional()
  .describe('Name of the webhook route. Absent if the update went to the webhook of setWebhook');

export const deliveryAttempt = z
  .strictObject({
    update_id: z.int().positive(),
    route,
    date: unixSeconds,
    delivered: z.boolean(),
    status: z.int().nullable().describe('HTTP status; null without an answer'),
    error: z.string().nullable(),
    latency_ms: z.int().min(0),
    answer: z
      .string()
      .describe(`The first ${limits.delivery_answer_kept_bytes} bytes of the answer, secrets masked`),
    tries: z.int().min(1).describe('Number of this attempt, starting at 1'),
    next_try_date: unixSeconds.nullable().describe('null if no retry is planned'),
    dead: z.string().optional().describe('Why the update became a dead letter'),
  })
  .meta({ id: 'DeliveryAttempt', description: 'One attempt to deliver one update.' });

const count = z.int().min(0);

export const attemptPage = pageOf(deliveryAttempt).extend({
  counts: z
    .strictObject({
      delivered: count,
      failed: count,
      dead: count,
      unkept: count.describe('Number of failures that are counted but not listed'),
    })
    .describe('Counts of all attempts, including those that are not listed'),
});

export const deadLetterPage = pageOf(
  z
    .strictObject({
      update_id: z.int().positive(),
      route,
      reason: z.string().describe('`expired`, `too_large` or `queue_full`'),
      date: unixSeconds.describe('Time at which Petrel stopped trying to deliver the update'),
      update,
    })
    .meta({ id: 'DeadLetter', description: 'An update that could not be delivered.' }),
);

export const webhookReplay = z
  .strictObject({
    replay_id: z.int().positive(),
    route: z.string().optional().describe('Name of the route that gets the updates. Absent for the webhook'),
    state: z.enum(['running', 'done', 'cancelled']),
    from_update_id: count.optional().describe('Absent for a replay from a time'),
    from_time: unixSeconds.optional(),
    last_update_id: count.describe('The newest update when the replay began. The replay ends with it'),
    reached_update_id: count
      .nullable()
      .describe('Updates up to this id were replayed or skipped. Null before the first step'),
    start_date: unixSeconds,
    end_date: unixSeconds.nullable(),
    delivered_count: count,
    pending_count: count.describe('Updates of the replay that are being delivered or wait for a retry'),
    dead_letter_count: count,
    last_error_message: z.string().nullable().describe('Null after the end of the replay'),
  })
  .meta({ id: 'WebhookReplay', description: 'A replay, which delivers stored updates to a webhook again.' });

const header = (value: z.ZodType<string | null>) => z.strictObject({ name: z.string(), value });
const ms = count.optional();

export const ping = z
  .strictObject({
    delivered: z.boolean().describe('Whether an update with this answer counts as delivered'),
    status: z.int().nullable().describe('HTTP status; null without an answer'),
    error: z.string().nullable().describe('The `last_error_message` that a delivery would have'),
    latency_ms: count,
    times: z
      .strictObject({ resolve_ms: ms, connect_ms: ms, tls_ms: ms, answer_ms: ms })
      .describe('Durations of the steps: look up the host, connect, TLS, answer. Only completed steps'),
    request: z.strictObject({
      headers: z.array(header(z.string().nullable().describe('null for a secret or a signature'))),
      body: z.string(),
    }),
    answer: z
      .strictObject({
        headers: z.array(header(z.string())).describe('With names in lower case, secrets masked'),
        omitted_headers: count.describe('Number of headers that are not shown because there are too many'),
        body: z.string().describe(`The first ${limits.ping_answer_shown_bytes} bytes, secrets masked`),
        truncated: z.boolean().describe('Whether the body is longer'),
      })
      .nullable()
      .describe('null without an answer'),
  })
  .meta({ id: 'Ping', description: 'A test request to a webhook, and its answer.' });

export type Ping = z.output<typeof ping>;

export const queuedCount = z.strictObject({ queued: count });
export const discardedCount = z.strictObject({ discarded: count });
