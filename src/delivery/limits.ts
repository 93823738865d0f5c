/** Sets the limits of webhooks: connections, retries, leases, attempt records and dead letters. */
export const deliveryLimits = {
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
  /** How long a TLS session may be resumed after its certificate was verified. */
  webhook_session_ms: 600_000,
  webhook_sessions_max: 2_000,
  webhook_session_bytes_max: 8 * 1024,
  /** The maximum duration of a test request (ping), and the number of pings that one front sends at a time. */
  webhook_ping_ms_max: 10_000,
  webhook_pings_max: 16,
  /**
   * The maximum number of answer headers that a ping shows to the owner, and the maximum size of their names and
   * values.
   */
  webhook_ping_headers_max: 50,
  webhook_ping_headers_bytes_max: 4 * 1024,
  webhook_pool_idle_ms: 60_000,
  webhook_retry_interval_ms_max: 120_000,
  webhook_retry_after_ms_max: 3_600_000,
  /** The longest delay that a retry policy can cause, before jitter is added. */
  webhook_policy_delay_ms_max: 3_600_000,
  webhook_retry_age_ms_max: 24 * 3_600_000,
  webhook_gone_ms: 23 * 3_600_000,
  webhook_lease_ms: 5_000,
  /**
   * A worker aborts its requests this long before its lease ends, because the worker's clock may be slower than the
   * clock of Redis.
   */
  webhook_lease_margin_ms: 50,
  webhook_renew_ms: 1_200,
  webhook_ring_interval_ms: 900,
  webhook_linger_ms: 2_500,
  webhook_stay_ms: 5_000,
  webhook_recent_ms: 5_000,
  webhook_grace_ms: 2_500,
  webhook_chat_batch_max: 8,
  webhook_take_max: 100,
  /** How many updates one script call fetches for chats that are being retried. */
  webhook_due_entries_max: 200,
  webhook_bury_batch_max: 50,
  webhook_held_entries_max: 400,
  webhook_held_bytes_max: 16 * 1024 * 1024,
  /** The maximum bytes of updates that one process may have fetched for all bots but not yet delivered. */
  webhook_held_bytes_total_max: 256 * 1024 * 1024,
  webhook_failures_in_a_row_max: 8,
  webhook_pause_ms_max: 60_000,
  webhook_slice_ms: 1_000,
  webhook_drains_max: 2_000,
  webhook_open_max: 1_000,
  webhook_stop_ms_max: 5_000,
  wake_ups_waiting_max: 10_000,
  wake_queue_shards: 8,
  delivery_record_kept_bytes_max: 64 * 1024,
  delivery_attempts_waiting_max: 5_000,
  delivery_records_waiting_bytes_max: 32 * 1024 * 1024,
  delivery_attempts_flush_ms: 500,
  /** How many delivered updates one statement stores. */
  kept_updates_batch_max: 500,
  delivery_successes_flush_ms: 2_000,
  delivery_successes_full_flush_ms: 10_000,
  blocked_look_ms: 4_000,
} as const;
