import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { limits } from '../../src/limits.js';

/** The longest pause of a waiting poll that has a consumer name. */
const consumerPauseMsMax = Math.max(
  limits.consumer_step_ms_min,
  limits.consumer_pause_ms * limits.consumers_max,
);
const root = fileURLToPath(new URL('../..', import.meta.url));
const filesBelow = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => /\.(ts|lua)$/.test(file))
    .map((file) => join(folder, file));
const read = (file: string) => readFileSync(join(root, file), 'utf8');
const sources = ['src', 'lua'].flatMap(filesBelow);
const defining = sources.filter((file) => /^src\/\w+\/limits\.ts$/.test(file));
const namesIn = (file: string) => [...read(file).matchAll(/^ {2}(\w+):/gm)].map(([, name]) => name as string);

test.each([
  [
    'versions must stay exact integers',
    limits.versions_per_incarnation * limits.incarnations_max < Number.MAX_SAFE_INTEGER,
  ],
  [
    'the history must have the hour that the operations page draws',
    limits.history_step_ms * limits.history_points_max === 3_600_000,
  ],
  [
    'a fill ticket must expire before flushed state can be evicted',
    limits.fill_ticket_ttl_ms < limits.hot_ttl_ms_min,
  ],
  [
    'a fill ticket must expire before a cached absence can be evicted',
    limits.fill_ticket_ttl_ms < limits.absent_ttl_ms,
  ],
  [
    'a fill ticket must expire before values read back into a full Redis can be evicted',
    limits.fill_ticket_ttl_ms < limits.redis_full_ttl_ms,
  ],
  [
    'deletions and deliveries need memory reserved for them',
    limits.redis_roomy_percent < limits.redis_full_percent && limits.redis_full_percent < 100,
  ],
  [
    'a process must know the shared key of a request as long as Redis keeps it',
    limits.unsettled_request_ms >= limits.request_id_ttl_ms,
  ],
  [
    'the chats of a dead consumer must move within five seconds',
    limits.consumer_lease_s_default * 1_000 + consumerPauseMsMax < 5_000,
  ],
  [
    'a waiting consumer must renew its lease in time, although two renewals are late',
    (limits.poll_tick_ms + consumerPauseMsMax) * 3 <= limits.consumer_lease_s_default * 1_000,
  ],
  [
    'Redis must know what a consumer got until its lease has ended',
    limits.consumer_lease_s_max * 1_000 < limits.consumers_ttl_ms,
  ],
  [
    'Redis must know what a stream sent until the stream of a silent client ends',
    limits.stream_confirm_ms_max + limits.consumer_lease_s_max * 1_000 < limits.consumers_ttl_ms,
  ],
  [
    'the unconfirmed updates of a stream must fit into its buffer',
    limits.script_read_bytes_max < limits.stream_buffer_bytes_max,
  ],
  ['a lease must survive two lost renewals', limits.auth_lease_renew_ms * 3 <= limits.auth_lease_ms],
  [
    'callers must get an answer before a silent connection is replaced',
    limits.redis_silence_ms < limits.redis_wait_ms_max &&
      limits.redis_wait_ms_max < limits.redis_command_timeout_ms,
  ],
  [
    'the content and keyboard of a message must fit its record',
    limits.content_bytes_max + limits.keyboard_bytes_max + 2 * 1024 <= limits.record_bytes_max,
  ],
  [
    'the largest album must fit a batch',
    limits.album_items_max * limits.record_bytes_max <= limits.messages_batch_bytes_max,
  ],
  ['the longest text must be storable', limits.text_length_max * 4 <= limits.content_bytes_max / 1.5],
  [
    'the listed reactors must be among the stored ones',
    limits.reactors_listed_max <= limits.reactors_kept_max,
  ],
  ['an upload may be larger than a plain body', limits.body_bytes_max <= limits.upload_bytes_max],
  [
    'the queue of waiting calls must have room for an upload',
    limits.upload_bytes_max + limits.body_bytes_max <= limits.calls_waiting_bytes_max,
  ],
  ['a picture must be allowed as an upload', limits.picture_bytes_max <= limits.upload_bytes_max],
  ['several uploads must fit at the same time', limits.upload_bytes_max * 4 <= limits.bodies_bytes_max / 2],
  [
    'an upload must fit the smallest budget for bodies',
    limits.upload_bytes_max <= limits.bodies_bytes_min / 2,
  ],
  [
    'partners have no token and must still be able to report leaks',
    limits.leak_body_bytes_max <= limits.stranger_bodies_bytes_max,
  ],
  ['a poll must end before the usual idle timeout of a balancer', limits.poll_timeout_s_max < 60],
  [
    'a scheduled post must not be tried again after its request id may be forgotten',
    limits.scheduled_post_tries_ms_max + limits.scheduled_post_claim_ms < limits.idempotency_ttl_ms,
  ],
  [
    'one author must be able to fill the scheduled posts of a channel',
    limits.scheduled_posts_per_chat_max <= limits.scheduled_posts_per_person_max &&
      limits.scheduled_posts_bytes_per_chat_max <= limits.scheduled_posts_bytes_per_person_max,
  ],
  [
    'a call must end before its idempotency key can be claimed again',
    limits.idempotency_lease_ms > limits.redis_command_timeout_ms + limits.idempotency_wait_ms_max &&
      limits.idempotency_lease_ms > limits.postgres_statement_timeout_ms,
  ],
  [
    'a delivery needs time to resolve, to connect and to be answered',
    limits.webhook_resolve_ms_max < limits.webhook_connect_ms_max &&
      limits.webhook_connect_ms_max < limits.webhook_deadline_ms,
  ],
  [
    'a ping must be able to report a failed look-up, and must end before a front stops and before its key is free again',
    limits.webhook_resolve_ms_max < limits.webhook_ping_ms_max &&
      limits.webhook_ping_ms_max <= limits.shutdown_ms_max &&
      limits.webhook_ping_ms_max < limits.idempotency_lease_ms,
  ],
  [
    'a ping whose turn has come must not be refused, and must end before its key is free again',
    limits.pings_at_once <= limits.webhook_pings_max &&
      limits.ping_wait_ms_max + limits.webhook_ping_ms_max < limits.idempotency_lease_ms,
  ],
  [
    'one receiver may not have more connections than all receivers together',
    limits.webhook_receiver_connections_max <= limits.webhook_connections_max,
  ],
  [
    'the longest link preview must fit its slot',
    4 *
      (limits.preview_title_length_max +
        limits.preview_description_length_max +
        limits.preview_site_name_length_max +
        'host:65535'.length +
        253) +
      100 <=
      limits.link_preview_bytes_max,
  ],
  [
    'a front that stops must wait longer than a link preview takes',
    limits.preview_wait_ms_max + limits.preview_ms_max <= limits.shutdown_ms_max,
  ],
  [
    'a link preview must be able to wait for a slow page of the same person',
    limits.preview_ms_max < limits.preview_wait_ms_max,
  ],
  ['replayed updates must not push out pending ones', limits.replay_max <= limits.queue_length_max / 2],
  [
    'an update must stay queued while it is retried',
    limits.webhook_retry_age_ms_max <= limits.queue_age_ms_max,
  ],
  [
    'Redis must keep the queue of a replay longer than its updates are retried',
    limits.replay_state_ttl_ms > limits.queue_age_ms_max,
  ],
  [
    'the slot of a replay must not be the slot of a route',
    limits.replay_slot > limits.route_slots_max &&
      Number.isSafeInteger((limits.replay_slot + 1) * 10 ** limits.bot_id_length_max),
  ],
  [
    'a worker must make several steps of a replay per claim',
    limits.replay_claim_ms >= 8 * limits.replay_step_ms,
  ],
  [
    'messages removed for age must be past editing, deletion and the queue age',
    limits.message_days_min * 86_400_000 >= limits.edit_age_ms_max + limits.queue_age_ms_max &&
      limits.message_days_min * 86_400_000 > limits.delete_age_ms_max,
  ],
  [
    'a bot must be able to answer an inline query while a person waits, and a server must not wait longer to stop',
    limits.inline_wait_ms_max < limits.inline_query_age_ms_max &&
      limits.inline_wait_ms_max <= limits.shutdown_ms_max,
  ],
  [
    'an inline answer must fit the room of its bot, and hold the largest result',
    limits.inline_answer_bytes_max <= limits.inline_answers_bytes_max / 10 &&
      limits.record_bytes_max <= limits.inline_answer_bytes_max,
  ],
  [
    'inline queries must leave most of a queue to other updates',
    limits.inline_pending_max <= limits.queue_length_max / 4 &&
      limits.inline_pending_bytes_max <= limits.queue_bytes_max / 4,
  ],
  [
    'a query in a button must fit an inline query',
    limits.button_query_bytes_max <= limits.inline_query_length_max,
  ],
  [
    'a batch of the retention job must end before its statement times out',
    limits.retention_piece_ms * 3 < limits.postgres_statement_timeout_ms,
  ],
])('%s', (_, holds) => {
  expect(holds).toBe(true);
});

test('the list of limits contains the limits of every subject', () => {
  expect(defining.length).toBeGreaterThan(10);
  expect(defining.flatMap(namesIn).sort()).toEqual(Object.keys(limits).sort());
});

test('every limit is a positive number that something uses', () => {
  expect(Object.entries(limits).filter(([, value]) => !(Number.isFinite(value) && value > 0))).toEqual([]);
  const text = [...sources.filter((file) => !defining.includes(file)), 'test/house/limits.test.ts']
    .map(read)
    .join('\n');
  const used = new Set(text.match(/\b[a-z]\w*_\w+\b/g));
  expect(Object.keys(limits).filter((name) => !used.has(name))).toEqual([]);
});
