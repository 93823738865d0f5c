/** Sets the limits for the use of Redis: memory, waiting times and the work of one script. */
export const redisLimits = {
  clock_read_ms: 60_000,
  clock_reread_ms: 1_000,
  /**
   * How many entries of a long list one script handles. The number is limited, because Redis serves no other client
   * while a script runs.
   */
  script_entries_max: 500,
  /** The maximum total size of the arguments of all calls in one combined run, in bytes. */
  combined_calls_bytes_max: 64 * 1024,
  /**
   * How long a process remembers the request id of a call with an unknown outcome. Redis keeps the script's answer for
   * the same time.
   */
  unsettled_request_ms: 60_000,
  unsettled_requests_max: 10_000,
  /** If a Redis server with unanswered commands sends no data for this long, it counts as unavailable. */
  redis_silence_ms: 1_500,
  /** How long a front waits for an unavailable Redis server or a migrating slot before it responds with 503. */
  redis_wait_ms_max: 2_000,
  /**
   * How long background work waits for an unavailable Redis server or a migrating slot. Background work waits longer
   * than a front, because no client waits for its result.
   */
  redis_wait_background_ms_max: 5_000,
  /** If a Redis connection with unanswered commands receives nothing for this long, it is replaced. */
  redis_command_timeout_ms: 5_000,
  /**
   * If Redis uses more than this percentage of its memory, it counts as full. Petrel then sends only deletions,
   * revocations, acknowledgements and deliveries.
   */
  redis_full_percent: 85,
  /**
   * A full Redis counts as full until it uses less than this percentage of its memory. Petrel then sends all writes
   * again.
   */
  redis_roomy_percent: 83,
  redis_memory_look_ms: 1_000,
  /**
   * The time to live of some values in a full Redis: values that were loaded from Postgres, and messages of a bot that
   * has used up its share of memory.
   */
  redis_full_ttl_ms: 10_000,
} as const;
