/** Builds the delivery attempts and dead letters that owners see (behaviour §10). */

import type { SigningSecret } from '../store/bots/signing_secrets.js';
import type { Profile } from '../store/core/codec.js';
import type { AttemptRow } from '../store/webhooks/attempts.js';
import type { HistoryReplay } from '../store/webhooks/history_replays.js';
import type { DeadLetter } from '../store/webhooks/replays.js';
import type { Time } from '../time.js';
import { viewUpdate } from './updates.js';

export const viewAttempt = (row: AttemptRow): Readonly<Record<string, unknown>> => ({
  update_id: row.update_id,
  ...(row.route === undefined ? {} : { route: row.route }),
  date: row.at,
  delivered: row.delivered,
  status: row.status,
  error: row.error,
  latency_ms: row.latency_ms,
  answer: row.answer,
  tries: row.tries,
  next_try_date: row.next_try_at,
  ...(row.dead === null ? {} : { dead: row.dead }),
});

export const viewDeadLetter = (
  { update, route, reason, date }: DeadLetter,
  bot: Profile,
  time: Time,
): Readonly<Record<string, unknown>> => ({
  update_id: update.updateId,
  ...(route === undefined ? {} : { route }),
  reason,
  date: Math.floor(date / 1_000),
  update: viewUpdate(update, bot, time),
});

export const viewSigningSecret = ({
  secret,
  formerUntil,
}: SigningSecret): Readonly<Record<string, unknown>> => ({
  secret,
  ...(formerUntil === null ? {} : { previous_valid_until: Math.floor(formerUntil / 1_000) }),
});

export const viewReplay = (replay: HistoryReplay): Readonly<Record<string, unknown>> => ({
  replay_id: replay.id,
  ...(replay.route === undefined ? {} : { route: replay.route }),
  state: replay.ended === null ? 'running' : replay.cancelled ? 'cancelled' : 'done',
  ...(replay.fromTime === null ? { from_update_id: replay.from } : { from_time: replay.fromTime }),
  last_update_id: replay.last,
  reached_update_id: replay.reached,
  start_date: replay.started,
  end_date: replay.ended,
  delivered_count: Math.max(0, replay.fed - replay.pending - replay.dead),
  pending_count: replay.pending,
  dead_letter_count: replay.dead,
  last_error_message: replay.error,
});
