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
  .meta({ id: 'SigningSecret', description: 'The secret that signs the deliveries of a bot.' });

const attempt = z
  .strictObject({
    update_id: z.int().positive(),
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

export const attemptPage = pageOf(attempt).extend({
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
      reason: z.string().describe('`expired`, `too_large` or `queue_full`'),
      date: unixSeconds.describe('Time at which Petrel stopped trying to deliver the update'),
      update,
    })
    .meta({ id: 'DeadLetter', description: 'An update that could not be delivered.' }),
);

export const queuedCount = z.strictObject({ queued: count });
export const discardedCount = z.strictObject({ discarded: count });
