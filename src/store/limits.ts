/** Sets the limits of stored data: messages, chats, accounts, tokens, queues and streams. */
export const storeLimits = {
  versions_per_incarnation: 2 ** 40,
  /** The maximum size of one stored message. It includes the content, the keyboard and the fixed fields. */
  record_bytes_max: 48 * 1024,
  content_bytes_max: 30 * 1024,
  edit_age_ms_max: 48 * 3_600_000,
  edit_interval_ms_min: 1_000,
  /** The maximum total size of pending edits in one partition: for the bots of one owner, and for all bots. */
  pending_edits_bytes_per_owner_max: 4 * 1024 * 1024,
  pending_edits_bytes_max: 16 * 1024 * 1024,
  /**
   * Each pending edit counts as this many bytes more than its own size, so the limits in bytes also limit the number of
   * pending edits.
   */
  pending_edit_overhead_bytes: 1024,
  /** How long a node waits before it retries a pending edit that could not be applied. */
  pending_edit_retry_ms: 1_000,
  /** How many pending edits of one partition a node applies at once. */
  pending_edits_batch_max: 64,
  granted_edits_max: 2,
  granted_edit_ttl_ms: 60_000,
  delete_age_ms_max: 48 * 3_600_000,
  /**
   * The maximum total size of the message records that one script creates. Each record is written to the state, to the
   * journal and, in groups, to the outbox.
   */
  messages_batch_bytes_max: 1024 * 1024,
  reactions_per_user_max: 20,
  reactors_kept_max: 125,
  reactors_latest_max: 25,
  acted_generation_ms: 3_600_000,
  post_stream_interval_ms: 250,
  counts_interval_ms_min: 1_000,
  counts_batch_max: 100,
  invite_code_bytes: 16,
  member_events_batch_max: 100,
  member_event_mark_ms: 24 * 3_600_000,
  tokens_used_waiting_max: 1_000,
  tokens_used_noted_max: 100_000,
  tokens_used_flush_ms: 1_000,
  rate_memory_max: 100_000,
  transfer_offer_ms: 7 * 24 * 3_600_000,
  deleted_username_hold_ms: 30 * 24 * 3_600_000,
  audit_events_per_bot_max: 10_000,
  memberships_ended_at_once: 100,
  /** How many batches of 1,000 updates one step deletes when the stored updates of a deleted bot are removed. */
  kept_pieces_deleted_at_once: 3,
  sticker_sets_per_bot_max: 100,
  /**
   * How many host names of webhooks and push subscriptions may be looked up in a burst. The full burst is available
   * again after a minute.
   */
  host_look_ups_per_bot_max: 20,
  host_look_ups_per_owner_max: 100,
  /** How many pings per minute an owner may send to webhooks. */
  pings_per_owner_max: 6,
  /**
   * How many pages may be loaded for one person's link previews in a burst. The full burst is available again after a
   * minute.
   */
  link_previews_per_person_max: 60,
  /** How many link previews are in Redis, and the maximum size of each. */
  link_preview_slots: 8_192,
  link_preview_bytes_max: 4 * 1024,
  /** How long a page's link preview is cached, and how long the cache remembers that a page has no preview. */
  link_preview_kept_ms: 12 * 3_600_000,
  link_preview_absent_ms: 600_000,
  /**
   * How often a caller may make Postgres check whether two people share a chat: first a burst, then one check per
   * interval.
   */
  stranger_look_ups_max: 100,
  stranger_look_up_ms: 100,
  updates_batch_max: 100,
  updates_answer_bytes_max: 4 * 1024 * 1024,
  poll_timeout_s_max: 50,
  poll_tick_ms: 1_000,
  /** How many waiting polls one script call checks. */
  polls_peeked_max: 500,
  /** How many consumers may share a bot's queue, and how long a consumer's name may be. */
  consumers_max: 64,
  consumer_name_length_max: 32,
  /** How long a consumer may wait between two poll steps before it loses its chats to other consumers. */
  consumer_lease_s_default: 4,
  consumer_lease_s_max: 60,
  /** The minimum time between two steps of a consumer's waiting poll. */
  consumer_step_ms_min: 20,
  /**
   * How long a waiting poll pauses between two steps, multiplied by the number of the bot's consumers. All consumers of
   * a bot together therefore make at most 1,000 / 3 steps a second, however many updates wake them.
   */
  consumer_pause_ms: 3,
  /**
   * How long a consumer may leave its updates unconfirmed before its stream ends. If a client disappears without
   * notice, other consumers thus get its updates.
   */
  stream_confirm_ms_max: 60_000,
  /** How long after the last poll Redis remembers which consumer holds which chat. */
  consumers_ttl_ms: 10 * 60_000,
  queue_length_max: 100_000,
  queue_bytes_max: 128 * 1024 * 1024,
  queue_age_ms_max: 24 * 3_600_000,
  /**
   * The maximum size of an update that is copied into its hint. The update is copied only if fewer than
   * hint_updates_max updates are pending.
   */
  hint_update_bytes_max: 4_096,
  hint_updates_max: 100,
  update_id_start_min: 1_000_000,
  update_id_start_max: 1_000_000_000,
  callback_query_age_ms_max: 15 * 60_000,
  inline_query_age_ms_max: 30_000,
  /** How long a person's call waits for the answer to an inline query. */
  inline_wait_ms_max: 7_000,
  /** How long after the bot's answer a person can choose a result. */
  inline_choice_ms: 5 * 60_000,
  /** A bot with more pending updates than this number or total size gets no inline queries. */
  inline_pending_max: 10_000,
  inline_pending_bytes_max: 16 * 1024 * 1024,
  inline_answer_bytes_max: 256 * 1024,
  /** The maximum number and the maximum total size of one bot's stored answers to inline queries. */
  inline_answers_max: 1_000,
  inline_answers_bytes_max: 4 * 1024 * 1024,
  /** How many inline queries a person may send in a burst. After that, one more is allowed per interval. */
  inline_queries_per_person_max: 30,
  inline_query_per_person_ms: 500,
  /** How many inline queries a bot may get in a burst. After that, one more is allowed per interval. */
  inline_queries_per_bot_max: 300,
  inline_query_per_bot_ms: 20,
  /** How long a bot's draft is shown after its last change. */
  draft_ttl_ms: 30_000,
  /**
   * A draft that keeps changing is stored at most once in this time. Only windows that are opened later need the stored
   * draft.
   */
  draft_store_interval_ms: 1_000,
  /**
   * The minimum time between two drafts that a stream shows for one chat. Meanwhile a newer draft replaces the pending
   * draft.
   */
  draft_show_interval_ms: 50,
  /** The minimum and maximum time for which a post can be scheduled in advance. */
  schedule_ahead_ms_min: 60_000,
  schedule_ahead_ms_max: 365 * 24 * 3_600_000,
  /**
   * The maximum time between two checks for scheduled posts, and the pause after a failed attempt. The maximum is
   * shorter than `schedule_ahead_ms_min`, so that each process finds a new post before the post is due.
   */
  scheduled_posts_look_ms_max: 4_000,
  scheduled_posts_retry_ms: 1_000,
  /** How many scheduled posts are published at once, and how long a process's claim on a post lasts. */
  scheduled_posts_batch_max: 20,
  scheduled_post_claim_ms: 10_000,
  /** How long after the first attempt a process keeps trying to publish a post. Shorter than `idempotency_ttl_ms`. */
  scheduled_post_tries_ms_max: 23 * 3_600_000,
  /**
   * How long a post that could not be published is kept, and how often posts that were kept for this time are deleted.
   */
  scheduled_post_failure_age_ms: 30 * 24 * 3_600_000,
  scheduled_posts_clean_ms: 3_600_000,
  account_removal_ms_max: 8_000,
  exports_max: 8,
  export_write_length_min: 16 * 1024,
  exports_in_interval_max: 3,
  export_interval_ms: 3_600_000,
  request_id_ttl_ms: 60_000,
  answer_request_ttl_ms: 10 * 60_000,
  auth_lease_ms: 1_000,
  auth_lease_renew_ms: 300,
  auth_lease_margin_ms: 250,
  /** If a node checks no token for this long, it lets its lease expire. */
  auth_idle_ms: 10_000,
  auth_cache_age_ms_max: 60_000,
  auth_log_length_max: 10_000,
  auth_cache_entries_max: 200_000,
  ring_interval_ms: 4_000,
  guess_memory_max: 10_000,
  guess_questions_max: 4,
  /**
   * How many unknown tokens may be looked up for one slowed address in a burst. After that, one more is allowed per
   * interval.
   */
  guess_look_ups_max: 10,
  guess_look_up_ms: 2_000,
  former_token_age_ms_max: 365 * 24 * 3_600_000,
  ring_age_ms_max: 15_000,
  /** A call that loads chats counts as one additional call for every `heads_per_call` chats. */
  heads_per_call: 500,
  /**
   * How long a process stores the order of a person's chat list for its later pages, and the maximum number of chats in
   * all stored orders of the process together.
   */
  chat_order_ms: 30_000,
  chat_orders_kept_max: 100_000,
  /**
   * The maximum number of rows that a search reads in total, and the maximum number from each chat if several chats are
   * searched.
   */
  search_rows_max: 10_000,
  search_rows_per_chat_max: 2_500,
  search_chats_max: 200,
  search_hits_per_chat: 3,
  /**
   * A search reads the rows of a page in steps. Each step reads up to twice as many rows as the previous step. No step
   * starts after `search_steps_ms`. Searching one more chat costs about as much as reading `search_chat_rows` more
   * rows.
   */
  search_step_rows_min: 250,
  search_step_rows_max: 2_000,
  search_steps_ms: 25,
  search_chat_rows: 25,
  search_timeout_ms: 2_000,
  /** The maximum number of people and bots that one administrator's search reads. */
  search_accounts_rows_max: 20_000,
  outbox_batch_entries_max: 200,
  /** How many updates one script call forwards from an outbox to one bot. */
  outbox_handover_max: 50,
  outbox_length_max: 100_000,
  outbox_bytes_max: 64 * 1024 * 1024,
  /**
   * An outbox with fewer entries than this cannot exceed the byte limit, even if each entry contains two records of the
   * maximum size.
   */
  outbox_length_small: 500,
  changes_log_length_max: 128,
  changes_log_ttl_ms: 10 * 60_000,
  /** How many chats of one partition one script call checks for changes. */
  changes_chats_max: 250,
  /** The lifetime of a new chat's change log until a member first reads the log. */
  changes_log_new_ttl_ms: 5_000,
  stream_keepalive_ms: 15_000,
  streams_per_user_max: 32,
  /** The maximum number of posts whose reactions one event stream reports. */
  posts_watched_max: 40,
  /** How many actions, such as typing, a person may show in a burst. After that, one more is allowed per interval. */
  actions_per_person_max: 5,
  action_per_person_ms: 1_000,
  /**
   * How many chat actions of people, such as typing, a node shows in one chat in a burst. After that, one more is shown
   * per interval.
   */
  actions_per_chat_max: 20,
  action_per_chat_ms: 100,
  /** How many changes of drafts a person may make in a burst. After that, one more is allowed per interval. */
  person_draft_changes_max: 30,
  person_draft_change_ms: 200,
  /**
   * The maximum number of a person's drafts, and their maximum total size. The oldest drafts are dropped. All drafts
   * expire this long after the person's last change of a draft.
   */
  person_drafts_max: 100,
  person_drafts_bytes_max: 256 * 1024,
  person_draft_ttl_ms: 30 * 24 * 3_600_000,
  /**
   * The maximum number of script calls that one change of routes makes to empty the queues of deleted routes. Each call
   * moves up to webhook_take_max updates.
   */
  route_moves_max: 5_000,
  webhook_connections_default: 40,
  webhook_secret_rotation_ms: 24 * 3_600_000,
  webhook_connections_max_per_bot: 100,
  webhook_error_age_ms_max: 24 * 3_600_000,
  replay_batch_max: 25,
  replay_max: 10_000,
  /** A replay pauses while this many updates or more are pending in its queue. */
  replay_pending_max: 25,
  /** Replays pause if a live update has been waiting for this long. */
  replay_late_ms: 2_000,
  replay_step_ms: 250,
  /** How long a worker's claim on a replay lasts. */
  replay_claim_ms: 5_000,
  /** How many replays one worker serves at a time. */
  replays_served_max: 10,
  /** How many of a bot's replays are listed. */
  replays_kept: 20,
  /** How long Redis keeps a replay's queue after the replay's last step. Longer than an update may be pending. */
  replay_state_ttl_ms: 25 * 3_600_000,
  replay_connections_max: 10,
  stored_file_bytes_min: 4_096,
  unused_file_age_ms_min: 3_600_000,
  unused_files_batch_max: 100,
  retention_interval_ms: 3_600_000,
  retention_piece_ms: 2_000,
  retention_batch_max: 500,
  fill_ticket_ttl_ms: 5_000,
  incarnation_sequence_skip: 10_000,
  /** How long Redis keeps revoked tokens, in case Postgres is restored to an earlier state. */
  revocation_age_ms_max: 7 * 24 * 3_600_000,
  /** How many revocations Redis stores. Each takes about 150 bytes. */
  revocations_kept_max: 200_000,
  leak_place_length_max: 512,
  talk_age_ms_max: 24 * 3_600_000,
  notices_batch_max: 50,
  /** How long a process has to send the notices that it claimed. After this time, another process sends them. */
  notice_claim_ms: 30_000,
  notice_retry_ms: 1_000,
  notice_retry_ms_max: 60_000,
  notice_tries_max: 1_500,
  admin_tokens_max: 100,
  admin_notes_in_flight_max: 100,
  /** How long the record of an open window lasts, and how often it is renewed. */
  presence_ttl_ms: 25_000,
  presence_renew_ms: 8_000,
  presence_batch_max: 500,
  push_subscriptions_max: 10,
  /** The maximum age of a message that still causes a notification. */
  push_age_ms_max: 10 * 60_000,
  push_gap_ms: 10_000,
  push_recipients_max: 10_000,
  push_due_max: 100_000,
  push_failures_max: 10,
  /**
   * How many changes of their name or avatar a person may make in a burst. After that, one more is allowed per
   * interval. One change may concern thousands of chats.
   */
  profile_changes_max: 10,
  profile_change_ms: 60_000,
  /**
   * How many chats are updated before a change of a name or avatar returns. The limit applies separately to chats with
   * bots and to chats of two people. The sweep updates the other chats.
   */
  profile_chats_max: 200,
  /** How many chats a person can pin at the top of the list. */
  chats_pinned_max: 5,
  script_read_bytes_max: 512 * 1024,
  /**
   * How long a durable call waits until its changes are in Postgres. After this time, the outcome of the call is
   * unknown.
   */
  durable_wait_ms_max: 5_000,
  /**
   * How often a front reads the progress of journals while durable calls wait. This finds flushes whose hints were
   * lost.
   */
  durable_look_ms: 100,
  /** The maximum number of unanswered durable calls in one front, and the maximum total size of their answers. */
  durable_calls_max: 10_000,
  durable_bytes_max: 64 * 1024 * 1024,
  /**
   * The maximum number of one account's unanswered durable calls in one front, and the maximum total size of their
   * answers.
   */
  durable_calls_per_account_max: 2_000,
  durable_bytes_per_account_max: 16 * 1024 * 1024,
  idempotency_ttl_ms: 24 * 3_600_000,
  idempotency_keys_max: 100_000,
  /**
   * The maximum size of an answer that is stored under an idempotency key. If a larger answer is needed again, it is
   * rebuilt from the records that the scripts stored.
   */
  idempotency_answer_bytes_max: 2 * 1024,
  idempotency_lease_ms: 15_000,
} as const;
