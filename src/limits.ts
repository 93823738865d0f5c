/** All numeric limits, each with its unit last in the name. The relations between them are asserted below. */
import { pushLimits } from './push_limits.js';

/**
 * Limits of messages, accounts and delivery (interface §8). Lengths count Unicode code points unless a name says
 * otherwise.
 */
export const limits = {
  text_length_max: 4096,
  caption_length_max: 1024,
  markup_length_max: 256 * 1024,
  /** Marks, escapes, tags and references in one text. The longest text with every character escaped has 4,096. */
  markup_marks_max: 5_000,
  callback_data_bytes_max: 64,
  keyboard_buttons_max: 100,
  /** One stored message: its content, its keyboard and room for the fixed fields. */
  record_bytes_max: 48 * 1024,
  content_bytes_max: 30 * 1024,
  keyboard_bytes_max: 16 * 1024,
  code_language_length_max: 64,
  entities_max: 100,
  callback_answer_length_max: 200,
  bot_name_length_max: 64,
  bot_description_length_max: 512,
  bot_short_description_length_max: 120,
  username_length_min: 3,
  username_length_max: 32,
  person_name_length_max: 64,
  chat_title_length_max: 128,
  start_payload_length_max: 64,
  commands_max: 100,
  command_name_length_max: 32,
  command_description_length_max: 256,
  command_scopes_max: 100,
  /** JSON of all command scopes of one bot. Holds one full list of 4-byte characters. */
  commands_bytes_max: 128 * 1024,

  edit_age_ms_max: 48 * 3_600_000,
  edit_interval_ms_min: 1_000,
  delete_age_ms_max: 48 * 3_600_000,
  messages_batch_max: 100,
  /**
   * All message records made by one script. Each record is written to the state, the journal and, in groups, the
   * outbox.
   */
  messages_batch_bytes_max: 1024 * 1024,

  reactions_per_user_max: 20,
  reactors_listed_max: 100,
  reactors_kept_max: 125,
  reactors_latest_max: 25,
  acted_generation_ms: 3_600_000,
  post_stream_interval_ms: 250,
  counts_interval_ms_min: 1_000,
  counts_batch_max: 100,

  bots_per_chat_max: 50,
  administrators_per_chat_max: 100,
  member_events_batch_max: 100,
  member_event_mark_ms: 24 * 3_600_000,
  bots_per_owner_max: 1_000,
  user_tokens_max: 100,
  user_token_name_length_max: 64,
  tokens_used_waiting_max: 1_000,
  tokens_used_noted_max: 100_000,
  bench_rate_max: 10_000,
  bench_seconds_max: 600,
  bench_connections_max: 1_000,
  tokens_used_flush_ms: 1_000,
  rate_memory_max: 100_000,
  rate_calls_max: 1_000_000,
  rate_seconds_max: 86_400,
  jwt_length_max: 8 * 1024,
  jwt_leeway_ms: 10_000,
  external_subject_length_max: 255,
  jwks_bytes_max: 256 * 1024,
  jwks_read_ms_max: 5_000,
  jwks_cooldown_ms: 30_000,
  jwks_refresh_ms: 10 * 60_000,
  jwks_age_ms_max: 24 * 3_600_000,
  writers_per_bot_max: 1_000,
  transfer_offer_ms: 7 * 24 * 3_600_000,
  deleted_username_hold_ms: 30 * 24 * 3_600_000,
  audit_events_per_bot_max: 10_000,
  admin_tokens_max: 100,
  admin_calls_kept: 200_000,
  admin_target_length_max: 128,
  admin_notes_in_flight_max: 100,
  memberships_ended_at_once: 100,
  chats_per_user_max: 5_000,
  /** Bots that one person may create in 24 hours, including deleted ones. Holds even if BOTS_PER_OWNER is lower. */
  bots_created_per_day_min: 100,
  /** Host name lookups for webhooks and push subscriptions: the burst, which refills within a minute. */
  host_look_ups_per_bot_max: 20,
  host_look_ups_per_owner_max: 100,
  /** How often strangers may add one person to chats per day, and how many people one stranger may add. */
  stranger_adds_per_day_max: 10,
  strangers_added_per_day_max: 50,
  /** A call that changes a bot's settings counts as this many calls. */
  settings_call_weight: 20,
  /** Settings calls of all bots of one owner, and changes by one person, in one process: how many run at once. */
  settings_calls_at_once: 2,
  settings_calls_waiting_max: 20,
  /**
   * Rate limit on checking in Postgres whether two people share a chat, per caller: the burst, then one check per
   * interval.
   */
  stranger_look_ups_max: 100,
  stranger_look_up_ms: 100,
  /** Open invitations of one person, in total and from one inviter. */
  invitations_per_user_max: 100,
  invitations_per_inviter_max: 10,
  invitation_age_ms_max: 30 * 24 * 3_600_000,
  declined_invitations_max: 1_000,
  page_size_max: 100,
  page_size_default: 50,
  /** Size of the items of one page as JSON, without the envelope. */
  page_bytes_max: 63 * 1024,
  preview_text_length_max: 128,
  message_head_bytes_max: 96,

  updates_batch_max: 100,
  updates_answer_bytes_max: 4 * 1024 * 1024,
  poll_timeout_s_max: 50,
  poll_tick_ms: 1_000,
  /** Waiting polls that one script call checks. */
  polls_peeked_max: 500,
  queue_length_max: 100_000,
  queue_bytes_max: 128 * 1024 * 1024,
  queue_age_ms_max: 24 * 3_600_000,
  update_id_start_min: 1_000_000,
  update_id_start_max: 1_000_000_000,
  webhook_connections_default: 40,
  webhook_url_length_max: 2_048,
  webhook_certificate_bytes_max: 3 * 1024 * 1024,
  webhook_certificates_max: 10,
  webhook_body_bytes_max: 10 * 1024 * 1024,
  webhook_deadline_ms: 60_000,
  webhook_connect_ms_max: 15_000,
  webhook_resolve_ms_max: 5_000,
  webhook_dial_ms_max: 4_000,
  webhook_dials_max: 4,
  webhook_answer_bytes_max: 64 * 1024,
  webhook_answer_head_bytes_max: 16 * 1024,
  webhook_interim_answers_max: 8,
  webhook_receiver_connections_max: 1_000,
  webhook_receiver_dials_max: 16,
  webhook_patience_ms: 500,
  webhook_connections_max: 8_000,
  webhook_connection_idle_ms: 4_000,
  webhook_connection_idle_ms_max: 60_000,
  webhook_pool_idle_ms: 60_000,
  webhook_retry_interval_ms_max: 120_000,
  webhook_retry_after_ms_max: 3_600_000,
  webhook_retry_age_ms_max: 24 * 3_600_000,
  webhook_failing_ms: 3_600_000,
  webhook_gone_ms: 23 * 3_600_000,
  webhook_secret_rotation_ms: 24 * 3_600_000,
  callback_query_age_ms_max: 15 * 60_000,

  webhook_connections_min: 1,
  webhook_connections_max_per_bot: 100,
  webhook_secret_length_max: 256,
  webhook_lease_ms: 5_000,
  webhook_renew_ms: 1_200,
  webhook_ring_interval_ms: 900,
  webhook_linger_ms: 2_500,
  webhook_stay_ms: 1_000,
  webhook_recent_ms: 5_000,
  webhook_grace_ms: 2_500,
  webhook_error_age_ms_max: 24 * 3_600_000,
  webhook_chat_batch_max: 8,
  webhook_take_max: 100,
  /** Updates of retried chats that one script call takes. */
  webhook_due_entries_max: 200,
  webhook_bury_batch_max: 50,
  webhook_held_entries_max: 400,
  webhook_held_bytes_max: 16 * 1024 * 1024,
  webhook_failures_in_a_row_max: 8,
  webhook_pause_ms_max: 60_000,
  webhook_slice_ms: 1_000,
  webhook_drains_max: 2_000,
  webhook_open_max: 1_000,
  webhook_stop_ms_max: 5_000,
  wake_ups_waiting_max: 10_000,
  wake_queue_shards: 8,
  dead_update_age_ms_max: 7 * 24 * 3_600_000,
  dead_updates_per_bot_max: 10_000,
  delivery_attempt_age_ms_max: 7 * 24 * 3_600_000,
  delivery_successes_kept: 100,
  delivery_failures_kept: 10_000,
  delivery_answer_kept_bytes: 1_024,
  delivery_record_kept_bytes_max: 64 * 1024,
  delivery_attempts_waiting_max: 5_000,
  delivery_records_waiting_bytes_max: 32 * 1024 * 1024,
  delivery_attempts_flush_ms: 500,
  delivery_successes_flush_ms: 2_000,
  delivery_successes_full_flush_ms: 10_000,
  replay_batch_max: 25,
  replay_max: 10_000,
  webhook_answer_calls_max: 100,

  talk_age_ms_max: 24 * 3_600_000,
  manage_question_ms: 15 * 60_000,
  notices_batch_max: 50,
  notice_retry_ms: 1_000,
  notice_retry_ms_max: 60_000,
  notice_tries_max: 1_500,
  notice_kept_ms: 30 * 24 * 3_600_000,

  body_bytes_max: 1024 * 1024,
  /** Share of a front's event loop that one account gets while others call, and how much of it at once. */
  ...{ cpu_share: 0.15, cpu_burst_ms: 20 },
  /** Calls of an account over its share wait for a slice. So does every call with at least this large a body. */
  ...{ cpu_slice_ms: 1, large_body_bytes_min: 16 * 1024 },
  /** Waiting calls of one account in one front, and the bytes of their bodies. */
  ...{ calls_waiting_max: 2_000, calls_waiting_bytes_max: 64 * 1024 * 1024 },
  upload_bytes_max: 50 * 1024 * 1024,
  multipart_parts_max: 100,
  /** Places in one body that begin like its boundary and continue with other text. */
  multipart_near_boundaries_max: 1_000,
  /** Parameters of one call, in the query and the body together. */
  parameters_max: 1_000,
  /** Values in one nested parameter. A schema takes 2 µs for each wrong one. */
  json_values_max: 2_000,
  /** Values in one list of entities or update types. */
  list_values_max: 10_000,
  /** Values in one JSON text, for instance a whole body. */
  json_text_values_max: 11_000,
  /** Bodies of all requests of one front: a quarter of its memory, within these bounds. */
  bodies_bytes_min: 128 * 1024 * 1024,
  bodies_bytes_max: 1024 * 1024 * 1024,
  /** Bodies of requests without a valid token: from all addresses together, and from one address. */
  strangers_bodies_bytes_max: 32 * 1024 * 1024,
  stranger_bodies_bytes_max: 8 * 1024 * 1024,
  /** Large bodies of one front that are read into reused memory, `body_bytes_max` each. */
  reused_bodies_max: 32,
  head_bytes_max: 64 * 1024,
  body_idle_ms_max: 30_000,

  album_items_min: 2,
  album_items_max: 10,
  file_name_length_max: 128,
  media_url_length_max: 2_048,
  media_title_length_max: 256,
  /** Texts of venues and contacts. */
  object_text_length_max: 256,
  vcard_length_max: 2_048,
  measure_ms_max: 2_000,
  measure_wait_ms_max: 6_000,
  measure_waiting_max: 64,
  measure_waiting_bytes_max: 256 * 1024 * 1024,
  picture_bytes_max: 10 * 1024 * 1024,
  picture_pixels_max: 32_000_000,
  picture_make_ms_max: 5_000,
  picture_wait_ms_max: 6_000,
  pictures_waiting_max: 16,
  avatar_side_px: 512,
  avatar_small_side_px: 128,
  avatar_given_side_px_min: 32,
  avatar_given_aspect_max: 20,
  start_picture_width_px: 640,
  start_picture_height_px: 360,
  stored_file_bytes_min: 4_096,
  unused_file_age_ms_min: 3_600_000,
  unused_files_batch_max: 100,
  unused_files_sweep_ms: 60_000,
  message_days_min: 3,
  message_days_max: 3_650,
  retention_interval_ms: 3_600_000,
  retention_look_ms: 5_000,
  retention_piece_ms: 2_000,
  retention_batch_max: 500,
  account_removal_ms_max: 8_000,
  exports_max: 8,
  export_write_length_min: 16 * 1024,
  exports_in_interval_max: 3,
  export_interval_ms: 3_600_000,
  downloads_max: 512,
  range_length_max: 256,
  downloads_per_caller_max: 64,
  download_chunk_bytes: 64 * 1024,

  id_max: 10_000_000_000_000,
  partitions_max: 1_000,

  request_id_ttl_ms: 60_000,
  answer_request_ttl_ms: 10 * 60_000,
  fill_ticket_ttl_ms: 5_000,
  idempotency_key_length_max: 255,
  idempotency_ttl_ms: 24 * 3_600_000,
  idempotency_keys_max: 100_000,
  /** Answers kept per day under the idempotency keys of one caller. */
  idempotency_bytes_max: 64 * 1024 * 1024,
  /** Larger answers are not kept. A repeated call rebuilds them from what its scripts recorded. */
  idempotency_answer_bytes_max: 2 * 1024,
  idempotency_lease_ms: 15_000,
  idempotency_wait_ms_max: 2_000,
  idempotency_look_ms: 50,
  hot_ttl_ms_min: 60_000,
  /** How long Redis caches that something does not exist. */
  absent_ttl_ms: 60_000,
  incarnation_sequence_skip: 10_000,
  versions_per_incarnation: 2 ** 40,
  incarnations_max: 4_096,

  clock_read_ms: 60_000,
  clock_reread_ms: 1_000,
  auth_lease_ms: 1_000,
  auth_lease_renew_ms: 300,
  auth_lease_margin_ms: 250,
  /** A node that checked no token for this long lets its lease expire. */
  auth_idle_ms: 10_000,
  auth_cache_age_ms_max: 60_000,
  auth_node_age_ms_max: 60_000,
  auth_log_length_max: 10_000,
  auth_cache_entries_max: 200_000,
  ring_interval_ms: 4_000,
  leak_reports_max: 10_000,
  /** Time between two notifications to bot owners about one report. */
  leak_notice_interval_ms: 2,
  leak_body_bytes_max: 8 * 1024 * 1024,
  leak_token_length_max: 256,
  leak_url_length_max: 4_096,
  leak_place_length_max: 512,
  leak_keys_ms_max: 5_000,
  leak_keys_bytes_max: 1024 * 1024,
  leak_keys_age_ms_max: 3_600_000,
  leak_keys_interval_ms_min: 30_000,
  guess_memory_max: 10_000,
  guess_questions_max: 4,
  /** Lookups of unknown tokens for one throttled address: the burst, then one per interval. */
  guess_look_ups_max: 10,
  guess_look_up_ms: 2_000,
  former_token_age_ms_max: 365 * 24 * 3_600_000,
  blocked_look_ms: 4_000,
  ring_age_ms_max: 15_000,

  journal_batch_entries_max: 1_000,
  journal_batch_bytes_max: 8 * 1024 * 1024,
  /** Delay before a failed read of the journal is retried. */
  journal_retry_ms_min: 50,
  journal_retry_ms_max: 2_000,
  /** Deletions and deliveries are accepted until the journal reaches this multiple of its high-water mark. */
  journal_reserve: 2,
  /** Bots, groups and channels whose flushed bytes one flusher tracks. */
  hot_levels_max: 100_000,
  journal_lease_ms: 3_000,
  flush_idle_ms_max: 3_000,
  flush_idle_cluster_ms_max: 250,
  forget_lease_ms: 5_000,
  forget_batch_keys_max: 500,
  /** Rows of the table control_marks. */
  control_mark_shards: 64,
  /** How often an open Postgres connection is compared with the state known to Redis. */
  postgres_check_ms: 2_000,
  /** A node that reported nothing for this long no longer counts as a user of its Redis. */
  redis_node_age_ms_max: 10_000,
  /** How long an operator's seal of Redis is valid. */
  redis_seal_age_ms_max: 3_600_000,
  /** How often a node compares the identities of Redis and Postgres, and reports which Redis it uses. */
  identity_check_ms: 4_000,
  /** How long Redis remembers revoked tokens, in case Postgres is restored to an earlier state. */
  revocation_age_ms_max: 7 * 24 * 3_600_000,
  /** Revocations that Redis keeps, about 150 bytes each. */
  revocations_kept_max: 200_000,
  /** A page that lists this many chats counts as one additional call. */
  heads_per_call: 500,
  /** How long later pages of chats reuse the order of the first page, and how many chats' orders a process keeps. */
  chat_order_ms: 30_000,
  chat_orders_kept_max: 100_000,
  revocations_page_max: 1_000,
  /** Replaced Postgres servers that Redis remembers. */
  replaced_servers_kept_max: 256,
  /** Ids to skip after the highest id known to be in use, when Postgres was restored to an earlier state. */
  postgres_sequence_skip: 10_000,
  /** Redis keys checked per batch, and per second, while entities are written to Postgres again. */
  rewrite_batch_keys_max: 200,
  rewrite_keys_per_second: 20_000,
  tombstone_age_ms_max: 24 * 3_600_000,
  outbox_batch_entries_max: 200,
  /** Updates that one script call forwards from an outbox to one bot. */
  outbox_handover_max: 50,
  outbox_length_max: 100_000,
  outbox_bytes_max: 64 * 1024 * 1024,
  /** Outbox entries that fit the byte limit even when each holds two of the largest records. */
  outbox_length_small: 500,

  changes_log_length_max: 128,
  changes_log_ttl_ms: 10 * 60_000,
  /** Chats of one partition whose changes one script call reads. */
  changes_chats_max: 250,
  /** TTL of the log of a new chat, until its members read it. */
  changes_log_new_ttl_ms: 5_000,
  stream_buffer_bytes_max: 1024 * 1024,
  stream_keepalive_ms: 15_000,
  streams_per_user_max: 32,
  /** Posts whose reactions one stream follows. */
  posts_watched_max: 40,
  /** Messages counted as unread after the last read one. */
  unread_counted_max: 100,

  ...pushLimits,
  /** Bounds of long lists inside one script. Redis serves no other client while a script runs. */
  script_entries_max: 500,
  script_read_bytes_max: 512 * 1024,
  /** A Redis server that owes replies and sends nothing for this long counts as away. */
  redis_silence_ms: 1_500,
  /** How long a front waits for a Redis server that is away, or for a slot that is migrating, before it answers 503. */
  redis_wait_ms_max: 2_000,
  /** The same wait in background processes, where no client waits. */
  redis_wait_background_ms_max: 5_000,
  /** A Redis connection that received nothing for this long is replaced. */
  redis_command_timeout_ms: 5_000,
  /** Above this share of its memory, Redis accepts only deletions, revocations, acknowledgements and deliveries. */
  redis_full_percent: 85,
  /** Below this share of its memory, Redis accepts all writes again. */
  redis_roomy_percent: 83,
  redis_memory_look_ms: 1_000,
  /** TTL in a full Redis of values read back from Postgres, and of messages whose bot used up its share of memory. */
  redis_full_ttl_ms: 10_000,
  /** How long a failed Postgres replica is skipped. */
  postgres_replica_rest_ms: 1_000,
  postgres_statement_timeout_ms: 10_000,
  /** How often the shard map is checked, and the age at which it is too old to use a shard. */
  ...{ shard_map_look_ms: 1_000, shard_map_age_ms_max: 5_000 },
  /** The same pair of bounds without DATABASE_SHARDS. */
  ...{ shard_map_idle_look_ms: 10_000, shard_map_idle_age_ms_max: 25_000 },
  postgres_copies_max: 3,
  postgres_copy_age_ms_max: 3_600_000,
  shutdown_ms_max: 10_000,
  connection_quiet_ms: 250,
  connection_linger_ms_max: 2_000,
  /** How often the backlogs in Redis are counted for the metrics. */
  backlog_interval_ms: 5_000,
  /** The operations page: how often a process reports itself, and when it counts as silent and as gone. */
  ...{ node_tell_ms: 2_000, node_silent_ms: 7_000, node_age_ms_max: 30_000, node_calls_told_max: 40 },
  /** Reports of processes shown with details. Enough for about fifty fronts. */
  ...{ nodes_told_bytes_max: 512 * 1024 },
  ...{ nodes_shown_max: 500, operations_look_ms: 1_000, operations_wait_ms_max: 3_000 },
  ...{ bots_ranked_max: 50, bots_looked_at_max: 1_024, dead_updates_counted_max: 100_000 },
} as const;

function assert(holds: boolean, what: string): void {
  if (!holds) throw new Error(`limits.ts: ${what}`);
}

assert(
  limits.versions_per_incarnation * limits.incarnations_max < Number.MAX_SAFE_INTEGER,
  'versions must stay exact integers',
);
assert(
  limits.fill_ticket_ttl_ms < limits.hot_ttl_ms_min,
  'a fill ticket must expire before flushed state can be evicted',
);
assert(
  limits.fill_ticket_ttl_ms < limits.absent_ttl_ms,
  'a fill ticket must expire before a cached absence can be evicted',
);
assert(
  limits.fill_ticket_ttl_ms < limits.redis_full_ttl_ms,
  'a fill ticket must expire before values read back into a full Redis can be evicted',
);
assert(
  limits.redis_roomy_percent < limits.redis_full_percent && limits.redis_full_percent < 100,
  'deletions and deliveries need memory reserved for them',
);
assert(limits.auth_lease_renew_ms * 3 <= limits.auth_lease_ms, 'a lease must survive two lost renewals');
assert(
  limits.redis_silence_ms < limits.redis_wait_ms_max &&
    limits.redis_wait_ms_max < limits.redis_command_timeout_ms,
  'callers must get an answer before a silent connection is replaced',
);
assert(
  limits.content_bytes_max + limits.keyboard_bytes_max + 2 * 1024 <= limits.record_bytes_max,
  'the content and keyboard of a message must fit its record',
);
assert(
  limits.album_items_max * limits.record_bytes_max <= limits.messages_batch_bytes_max,
  'the largest album must fit a batch',
);
assert(limits.text_length_max * 4 <= limits.content_bytes_max / 1.5, 'the longest text must be storable');
assert(
  limits.reactors_listed_max <= limits.reactors_kept_max,
  'the listed reactors must be among those kept',
);
assert(limits.body_bytes_max <= limits.upload_bytes_max, 'an upload may be larger than a plain body');
assert(
  limits.upload_bytes_max + limits.body_bytes_max <= limits.calls_waiting_bytes_max,
  'an upload must be able to wait',
);
assert(limits.picture_bytes_max <= limits.upload_bytes_max, 'a picture is an upload');
assert(
  limits.upload_bytes_max * 4 <= limits.bodies_bytes_max / 2,
  'several uploads must fit at the same time',
);
assert(
  limits.upload_bytes_max <= limits.bodies_bytes_min / 2,
  'an upload must fit the smallest budget for bodies',
);
assert(
  limits.leak_body_bytes_max <= limits.stranger_bodies_bytes_max,
  'partners have no token and must still be able to report leaks',
);
assert(limits.poll_timeout_s_max < 60, 'a poll must end before the usual idle timeout of a balancer');
assert(
  limits.idempotency_lease_ms > limits.redis_command_timeout_ms + limits.idempotency_wait_ms_max &&
    limits.idempotency_lease_ms > limits.postgres_statement_timeout_ms,
  'a call must end before its idempotency key can be claimed again',
);
assert(
  limits.webhook_resolve_ms_max < limits.webhook_connect_ms_max &&
    limits.webhook_connect_ms_max < limits.webhook_deadline_ms,
  'a delivery needs time to resolve, to connect and to be answered',
);
assert(
  limits.webhook_receiver_connections_max <= limits.webhook_connections_max,
  'one receiver may not have more connections than all receivers together',
);
assert(limits.replay_max <= limits.queue_length_max / 2, 'replayed updates must not push out pending ones');
assert(
  limits.webhook_retry_age_ms_max <= limits.queue_age_ms_max,
  'an update must stay queued while it is retried',
);
assert(
  limits.message_days_min * 86_400_000 >= limits.edit_age_ms_max + limits.queue_age_ms_max &&
    limits.message_days_min * 86_400_000 > limits.delete_age_ms_max,
  'messages removed for age must be past editing, deletion and the queue age',
);
assert(
  limits.retention_piece_ms * 3 < limits.postgres_statement_timeout_ms,
  'a batch of the retention job must end before its statement times out',
);
