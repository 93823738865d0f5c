/** Sets the limits of the journal: batches, leases, recovery, retention and the lifetime of state in Redis. */
export const journalLimits = {
  retention_look_ms: 5_000,
  /** How long Redis caches the fact that a record does not exist. */
  absent_ttl_ms: 60_000,
  incarnations_max: 4_096,
  journal_batch_entries_max: 1_000,
  journal_batch_bytes_max: 8 * 1024 * 1024,
  journal_retry_ms_min: 50,
  journal_retry_ms_max: 2_000,
  /** Deletions and deliveries are accepted until the journal reaches this multiple of its limit. */
  journal_reserve: 2,
  /** For how many bots, groups and channels one flusher counts flushed bytes. */
  hot_levels_max: 100_000,
  journal_lease_ms: 3_000,
  /**
   * How long a committed batch may wait before its entries leave the journal, so that one script can remove the entries
   * of several batches. This applies only to batches that callers requested.
   */
  settle_wait_ms_max: 50,
  flush_idle_ms_max: 3_000,
  flush_idle_cluster_ms_max: 250,
  /**
   * A front's request for a flush expires after this time. A front that is still waiting repeats its request earlier.
   */
  flush_asked_age_ms_max: 500,
  forget_lease_ms: 5_000,
  forget_batch_keys_max: 500,
  /** How often an open Postgres connection is checked against the state that Redis stores. */
  postgres_check_ms: 2_000,
  /** How long a seal stays valid. A seal proves that an operator shut Redis down cleanly (`petrel redis seal`). */
  redis_seal_age_ms_max: 3_600_000,
  /** How often a node compares the identities of Redis and Postgres. */
  identity_check_ms: 4_000,
  revocations_page_max: 1_000,
  /** The maximum number of replaced Postgres servers that Redis remembers. */
  replaced_servers_kept_max: 256,
  /**
   * The maximum number of Redis keys that a rewrite checks in one batch, and in one second. A rewrite writes entities
   * to Postgres again.
   */
  rewrite_batch_keys_max: 200,
  rewrite_keys_per_second: 20_000,
  tombstone_age_ms_max: 24 * 3_600_000,
  dead_update_age_ms_max: 7 * 24 * 3_600_000,
  dead_updates_per_bot_max: 10_000,
  delivery_attempt_age_ms_max: 7 * 24 * 3_600_000,
  delivery_failures_kept: 10_000,
  notice_kept_ms: 30 * 24 * 3_600_000,
  admin_calls_kept: 200_000,
  member_event_age_ms_max: 7 * 24 * 3_600_000,
} as const;
