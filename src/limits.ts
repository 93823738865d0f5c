/** Every number that bounds something, with its unit last in the name. Relations between them are asserted below. */

/** Interface §8 and behaviour of messages. Lengths count Unicode code points unless a name says otherwise. */
export const limits = {
  text_length_max: 4096,
  caption_length_max: 1024,
  markup_length_max: 256 * 1024,
  callback_data_bytes_max: 64,
  keyboard_buttons_max: 100,
  keyboard_bytes_max: 64 * 1024,
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

  edit_age_ms_max: 48 * 3_600_000,
  edit_interval_ms_min: 1_000,
  delete_age_ms_max: 48 * 3_600_000,
  messages_batch_max: 100,

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
  chats_per_user_max: 5_000,
  page_size_max: 100,
  page_size_default: 50,

  updates_batch_max: 100,
  updates_answer_bytes_max: 4 * 1024 * 1024,
  poll_timeout_s_max: 50,
  poll_tick_ms: 1_000,
  queue_length_max: 100_000,
  queue_bytes_max: 128 * 1024 * 1024,
  queue_age_ms_max: 24 * 3_600_000,
  update_id_start_min: 1_000_000,
  update_id_start_max: 1_000_000_000,
  webhook_connections_default: 40,
  webhook_url_length_max: 2_048,
  webhook_certificate_bytes_max: 3 * 1024 * 1024,
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
  webhook_connections_max: 8_000,
  webhook_connection_idle_ms: 4_000,
  webhook_connection_idle_ms_max: 60_000,
  webhook_pool_idle_ms: 60_000,
  webhook_retry_interval_ms_max: 120_000,
  webhook_retry_after_ms_max: 3_600_000,
  webhook_retry_age_ms_max: 24 * 3_600_000,
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
  webhook_grace_ms: 2_500,
  webhook_error_age_ms_max: 24 * 3_600_000,
  webhook_chat_batch_max: 8,
  webhook_take_max: 100,
  webhook_held_entries_max: 400,
  webhook_held_bytes_max: 16 * 1024 * 1024,
  webhook_failures_in_a_row_max: 8,
  webhook_pause_ms_max: 60_000,
  webhook_slice_ms: 1_000,
  webhook_drains_max: 2_000,
  webhook_open_max: 1_000,
  webhook_stop_ms_max: 5_000,
  doorbell_rings_max: 10_000,
  doorbell_shards: 8,
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
  replay_batch_max: 100,
  replay_max: 10_000,
  webhook_answer_calls_max: 100,

  body_bytes_max: 1024 * 1024,
  upload_bytes_max: 50 * 1024 * 1024,
  multipart_parts_max: 100,
  json_values_max: 10_000,
  bodies_bytes_max: 1024 * 1024 * 1024,
  head_bytes_max: 64 * 1024,
  body_idle_ms_max: 30_000,

  album_items_min: 2,
  album_items_max: 10,
  file_name_length_max: 128,
  media_url_length_max: 2_048,
  media_title_length_max: 256,
  measure_ms_max: 2_000,
  measure_wait_ms_max: 6_000,
  measure_waiting_max: 64,
  measure_waiting_bytes_max: 256 * 1024 * 1024,
  downloads_max: 512,
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
  idempotency_lease_ms: 15_000,
  idempotency_wait_ms_max: 2_000,
  idempotency_look_ms: 50,
  hot_ttl_ms_min: 60_000,
  incarnation_sequence_skip: 10_000,
  versions_per_incarnation: 2 ** 40,
  incarnations_max: 4_096,

  auth_lease_ms: 1_000,
  auth_lease_renew_ms: 300,
  auth_lease_margin_ms: 250,
  auth_cache_age_ms_max: 60_000,
  auth_node_age_ms_max: 60_000,
  auth_log_length_max: 10_000,
  auth_cache_entries_max: 200_000,
  ring_interval_ms: 4_000,
  ring_age_ms_max: 15_000,

  journal_batch_entries_max: 1_000,
  journal_lease_ms: 3_000,
  forget_lease_ms: 5_000,
  forget_batch_keys_max: 500,
  tombstone_age_ms_max: 24 * 3_600_000,
  outbox_batch_entries_max: 200,
  outbox_length_max: 100_000,

  changes_log_length_max: 128,
  changes_log_ttl_ms: 10 * 60_000,
  stream_buffer_bytes_max: 1024 * 1024,
  stream_keepalive_ms: 15_000,
  streams_per_user_max: 32,

  redis_command_timeout_ms: 5_000,
  postgres_statement_timeout_ms: 10_000,
  shutdown_ms_max: 10_000,
} as const;

function assert(holds: boolean, what: string): void {
  if (!holds) throw new Error(`limits.ts: ${what}`);
}

assert(
  limits.versions_per_incarnation * limits.incarnations_max < Number.MAX_SAFE_INTEGER,
  'a version must stay an exact number',
);
assert(
  limits.fill_ticket_ttl_ms < limits.hot_ttl_ms_min,
  'a ticket must end before what was flushed can be evicted',
);
assert(limits.auth_lease_renew_ms * 3 <= limits.auth_lease_ms, 'a lease must survive two lost renewals');
assert(limits.reactors_listed_max <= limits.reactors_kept_max, 'what is listed of reactors must be kept');
assert(limits.body_bytes_max <= limits.upload_bytes_max, 'an upload may be larger than a plain body');
assert(
  limits.upload_bytes_max * 4 <= limits.bodies_bytes_max / 2,
  'several uploads must fit beside each other',
);
assert(limits.poll_timeout_s_max < 60, 'a poll must end before the usual idle timeout of a balancer');
assert(
  limits.idempotency_lease_ms > limits.redis_command_timeout_ms + limits.idempotency_wait_ms_max &&
    limits.idempotency_lease_ms > limits.postgres_statement_timeout_ms,
  'a call must end before another may run under its idempotency key',
);
assert(
  limits.webhook_resolve_ms_max < limits.webhook_connect_ms_max &&
    limits.webhook_connect_ms_max < limits.webhook_deadline_ms,
  'a delivery must leave time to look up, to connect and to answer',
);
assert(
  limits.webhook_receiver_connections_max <= limits.webhook_connections_max,
  'one receiver may not have more connections than all have',
);
assert(
  limits.replay_max <= limits.queue_length_max / 2,
  'what is delivered again must not push out what waits',
);
assert(
  limits.webhook_retry_age_ms_max <= limits.queue_age_ms_max,
  'an update must stay queued while it is retried',
);
