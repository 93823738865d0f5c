/** Every number that bounds something, with its unit last in the name. Relations between them are asserted below. */
import { pushLimits } from './push_limits.js';

/** Interface §8 and behaviour of messages. Lengths count Unicode code points unless a name says otherwise. */
export const limits = {
  text_length_max: 4096,
  caption_length_max: 1024,
  markup_length_max: 256 * 1024,
  callback_data_bytes_max: 64,
  keyboard_buttons_max: 100,
  /** Of a stored message: its parts below and room for what never changes. */
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
  /** of all scopes of a bot as JSON: room for one longest list of 4-byte characters */
  commands_bytes_max: 128 * 1024,

  edit_age_ms_max: 48 * 3_600_000,
  edit_interval_ms_min: 1_000,
  delete_age_ms_max: 48 * 3_600_000,
  messages_batch_max: 100,
  /** Of the records that one step makes: each is written to state and journal, and in groups to the outbox. */
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
  /** of one person by all strangers, and of all strangers by one person */
  /** as how many calls of a bot one counts that changes its settings */
  settings_call_weight: 20,
  /** such calls of all bots of one owner in one process: at once, and in turn */
  settings_calls_at_once: 2,
  settings_calls_waiting_max: 20,
  stranger_adds_per_day_max: 10,
  strangers_added_per_day_max: 50,
  /** people whom one caller has compared with their chats in Postgres: at once, and after how long another one */
  stranger_look_ups_max: 100,
  stranger_look_up_ms: 100,
  /** open ones of a person, and those of them from one inviter */
  invitations_per_user_max: 100,
  invitations_per_inviter_max: 10,
  invitation_age_ms_max: 30 * 24 * 3_600_000,
  declined_invitations_max: 1_000,
  page_size_max: 100,
  page_size_default: 50,
  /** of all items of a page; the envelope comes on top */
  page_bytes_max: 63 * 1024,
  preview_text_length_max: 128,
  message_head_bytes_max: 96,

  updates_batch_max: 100,
  updates_answer_bytes_max: 4 * 1024 * 1024,
  poll_timeout_s_max: 50,
  poll_tick_ms: 1_000,
  /** waiting polls that one step looks at */
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
  /** updates of chats that are retried, in one step */
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
  /** A call with so much in its body, but an upload, waits for those before it of the same account. */
  large_body_bytes_min: 16 * 1024,
  upload_bytes_max: 50 * 1024 * 1024,
  multipart_parts_max: 100,
  /** of one call, in its query and in its body */
  parameters_max: 1_000,
  /** of one nested parameter */
  json_values_max: 10_000,
  /** of one JSON text, a whole body included */
  json_text_values_max: 11_000,
  /** of all requests of a front together: a quarter of its memory, but between these */
  bodies_bytes_min: 128 * 1024 * 1024,
  bodies_bytes_max: 1024 * 1024 * 1024,
  /** of requests without a good token, from all addresses together and from one */
  strangers_bodies_bytes_max: 32 * 1024 * 1024,
  stranger_bodies_bytes_max: 8 * 1024 * 1024,
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
  /** kept in a day for the keys of one caller */
  idempotency_bytes_max: 64 * 1024 * 1024,
  /** A larger answer is not kept: a repeated call makes it again from what its scripts remember. */
  idempotency_answer_bytes_max: 2 * 1024,
  idempotency_lease_ms: 15_000,
  idempotency_wait_ms_max: 2_000,
  idempotency_look_ms: 50,
  hot_ttl_ms_min: 60_000,
  /** copies that say that something never was */
  absent_ttl_ms: 60_000,
  incarnation_sequence_skip: 10_000,
  versions_per_incarnation: 2 ** 40,
  incarnations_max: 4_096,

  clock_read_ms: 60_000,
  auth_lease_ms: 1_000,
  auth_lease_renew_ms: 300,
  auth_lease_margin_ms: 250,
  /** A node that remembers tokens and was not asked for so long lets its lease run out. */
  auth_idle_ms: 10_000,
  auth_cache_age_ms_max: 60_000,
  auth_node_age_ms_max: 60_000,
  auth_log_length_max: 10_000,
  auth_cache_entries_max: 200_000,
  ring_interval_ms: 4_000,
  leak_reports_max: 10_000,
  /** between what owners are told of one report */
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
  /** of unknown tokens for one slowed address: at once, and after how long another one */
  guess_look_ups_max: 10,
  guess_look_up_ms: 2_000,
  former_token_age_ms_max: 365 * 24 * 3_600_000,
  blocked_look_ms: 4_000,
  ring_age_ms_max: 15_000,

  journal_batch_entries_max: 1_000,
  journal_batch_bytes_max: 8 * 1024 * 1024,
  /** before what failed is read again */
  journal_retry_ms_min: 50,
  journal_retry_ms_max: 2_000,
  /** Deletions and deliveries go on until the journal is this many times its high-water mark. */
  journal_reserve: 2,
  /** bots, groups and channels whose flushed bytes a flusher remembers */
  hot_levels_max: 100_000,
  journal_lease_ms: 3_000,
  flush_idle_ms_max: 3_000,
  flush_idle_cluster_ms_max: 250,
  forget_lease_ms: 5_000,
  forget_batch_keys_max: 500,
  /** rows of control_marks */
  control_mark_shards: 64,
  /** how often a connection that stands is compared with Redis again */
  postgres_check_ms: 2_000,
  /** after which a node that told nothing no longer holds to its Redis */
  redis_node_age_ms_max: 10_000,
  /** how often a node compares what Redis and Postgres name, and tells which Redis it uses */
  identity_check_ms: 4_000,
  /** how long Redis remembers what was revoked, should Postgres go back to before it */
  revocation_age_ms_max: 7 * 24 * 3_600_000,
  /** some 150 bytes each */
  revocations_kept_max: 200_000,
  revocations_page_max: 1_000,
  /** Servers of Postgres that others have replaced, of which Redis knows. */
  replaced_servers_kept_max: 256,
  /** past the ids that are known to have been handed out before Postgres went back */
  postgres_sequence_skip: 10_000,
  /** keys of Redis that are looked at together, and in a second, when entities are written again */
  rewrite_batch_keys_max: 200,
  rewrite_keys_per_second: 20_000,
  tombstone_age_ms_max: 24 * 3_600_000,
  outbox_batch_entries_max: 200,
  /** updates of one outbox that one bot is handed in one step */
  outbox_handover_max: 50,
  outbox_length_max: 100_000,

  changes_log_length_max: 128,
  changes_log_ttl_ms: 10 * 60_000,
  /** chats of one partition whose changes one step reads */
  changes_chats_max: 250,
  /** of a new chat's log: until those who are in it look */
  changes_log_new_ttl_ms: 5_000,
  stream_buffer_bytes_max: 1024 * 1024,
  stream_keepalive_ms: 15_000,
  streams_per_user_max: 32,
  /** posts whose reactions one stream shows */
  posts_watched_max: 40,
  /** messages after the last read one that are counted */
  unread_counted_max: 100,

  ...pushLimits,
  /** What one script reads and handles of what may be long: Redis serves nobody else meanwhile. */
  script_entries_max: 500,
  script_read_bytes_max: 512 * 1024,
  /** a server that owes answers and sends nothing counts as away */
  redis_silence_ms: 1_500,
  /** for a server that is away, or a slot that is being moved: then a front answers 503 */
  redis_wait_ms_max: 2_000,
  /** the same of other roles, which nobody waits for */
  redis_wait_background_ms_max: 5_000,
  /** a connection on which nothing came for so long is replaced */
  redis_command_timeout_ms: 5_000,
  /** Above this share of its memory, Redis takes only what deletes, revokes, acknowledges or delivers. */
  redis_full_percent: 85,
  /** Below this share it takes everything again. */
  redis_roomy_percent: 83,
  redis_memory_look_ms: 1_000,
  /** How long what is read back stays in a Redis that is full, and a message whose bot has had its bytes. */
  redis_full_ttl_ms: 10_000,
  /** How long a standby that failed is not read from. */
  postgres_replica_rest_ms: 1_000,
  postgres_statement_timeout_ms: 10_000,
  /** A look at the shard map, and how old the last one may be before nothing is asked of a shard any more. */
  ...{ shard_map_look_ms: 1_000, shard_map_age_ms_max: 5_000 },
  /** Without DATABASE_SHARDS. */
  shard_map_idle_look_ms: 10_000,
  postgres_copies_max: 3,
  postgres_copy_age_ms_max: 3_600_000,
  shutdown_ms_max: 10_000,
  connection_quiet_ms: 250,
  connection_linger_ms_max: 2_000,
  /** How often what waits in Redis is counted for metrics. */
  backlog_interval_ms: 5_000,
  /** What operators see: how often a process tells of itself, when it counts as silent, and when as gone. */
  ...{ node_tell_ms: 2_000, node_silent_ms: 7_000, node_age_ms_max: 30_000, node_calls_told_max: 40 },
  /** of nodes whose details are shown: those of some fifty fronts */
  ...{ nodes_told_bytes_max: 512 * 1024 },
  ...{ nodes_shown_max: 500, operations_look_ms: 1_000, operations_wait_ms_max: 3_000 },
  ...{ bots_ranked_max: 50, bots_looked_at_max: 1_024, dead_updates_counted_max: 100_000 },
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
assert(
  limits.fill_ticket_ttl_ms < limits.absent_ttl_ms,
  'a ticket must end before what was read back under it can be evicted',
);
assert(
  limits.fill_ticket_ttl_ms < limits.redis_full_ttl_ms,
  'a ticket must end before what was read back under it can be evicted',
);
assert(
  limits.redis_roomy_percent < limits.redis_full_percent && limits.redis_full_percent < 100,
  'deletions and deliveries need room that nothing else may take',
);
assert(limits.auth_lease_renew_ms * 3 <= limits.auth_lease_ms, 'a lease must survive two lost renewals');
assert(
  limits.redis_silence_ms < limits.redis_wait_ms_max &&
    limits.redis_wait_ms_max < limits.redis_command_timeout_ms,
  'a caller must be answered before a silent connection is replaced',
);
assert(
  limits.content_bytes_max + limits.keyboard_bytes_max + 2 * 1024 <= limits.record_bytes_max,
  'the parts of a message must fit its record',
);
assert(
  limits.album_items_max * limits.record_bytes_max <= limits.messages_batch_bytes_max,
  'the largest album must fit a batch',
);
assert(limits.text_length_max * 4 <= limits.content_bytes_max / 1.5, 'the longest text must be storable');
assert(limits.reactors_listed_max <= limits.reactors_kept_max, 'what is listed of reactors must be kept');
assert(limits.body_bytes_max <= limits.upload_bytes_max, 'an upload may be larger than a plain body');
assert(limits.picture_bytes_max <= limits.upload_bytes_max, 'a picture is an upload');
assert(
  limits.upload_bytes_max * 4 <= limits.bodies_bytes_max / 2,
  'several uploads must fit beside each other',
);
assert(limits.upload_bytes_max <= limits.bodies_bytes_min / 2, 'an upload must fit in the smallest room');
assert(
  limits.leak_body_bytes_max <= limits.stranger_bodies_bytes_max,
  'a partner, who has no token, must be able to report leaks',
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
assert(
  limits.message_days_min * 86_400_000 >= limits.edit_age_ms_max + limits.queue_age_ms_max &&
    limits.message_days_min * 86_400_000 > limits.delete_age_ms_max,
  'what is removed for its age must not change any more, nor wait for a bot',
);
assert(
  limits.retention_piece_ms * 3 < limits.postgres_statement_timeout_ms,
  'a piece must end before its transaction counts as idle',
);
