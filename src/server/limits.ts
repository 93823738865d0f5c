/** The limits of calls: parameters, shares of a front, idempotency keys and downloads. */
export const callLimits = {
  /** A change of a bot's settings counts as this many calls. */
  settings_call_weight: 20,
  /**
   * How many changes of bot settings one process runs at the same time for one owner. The same number limits the
   * changes that one person makes through the application API.
   */
  settings_calls_at_once: 2,
  settings_calls_waiting_max: 20,
  /** A search by a person counts as this many calls. */
  search_call_weight: 5,
  /**
   * How many searches one front runs at the same time, how many more may wait in total, and how many more of one person
   * may wait. A front runs one search per person at a time.
   */
  searches_at_once: 4,
  searches_waiting_max: 100,
  searches_per_person_waiting_max: 5,
  search_wait_ms_max: 5_000,
  /**
   * How many test requests to webhooks one front sends at the same time, and how many more may wait. An owner has one
   * test request at a time.
   */
  pings_at_once: 16,
  pings_waiting_max: 64,
  ping_wait_ms_max: 3_000,
  /**
   * How many requests for pages of posts one front handles at the same time: from one client address, and from all
   * addresses. Further requests wait in order.
   */
  post_pages_per_address_at_once: 2,
  post_pages_per_address_waiting_max: 20,
  post_pages_at_once: 8,
  post_pages_waiting_max: 200,
  webhook_answer_calls_max: 100,
  /**
   * While other accounts make calls, one account may use `cpu_share` of the time of a front's event loop in the long
   * run, and `cpu_burst_ms` at once.
   */
  cpu_share: 0.15,
  cpu_burst_ms: 20,
  /**
   * How long waiting calls run before newly arrived calls get a turn, and the minimum size of a body whose call always
   * waits.
   */
  cpu_slice_ms: 1,
  large_body_bytes_min: 16 * 1024,
  /** How many calls of one account may wait in one front, and how many bytes their bodies may have. */
  calls_waiting_max: 2_000,
  calls_waiting_bytes_max: 64 * 1024 * 1024,
  multipart_parts_max: 100,
  /**
   * How many times the content of a multipart body may contain text that only looks like a delimiter: the boundary
   * string followed by other text.
   */
  multipart_near_boundaries_max: 1_000,
  /** The maximum number of parameters of one call, in the query and the body together. */
  parameters_max: 1_000,
  downloads_max: 512,
  downloads_per_caller_max: 64,
  idempotency_key_length_max: 255,
  /** How many bytes of answers are saved per day under one caller's idempotency keys. */
  idempotency_bytes_max: 64 * 1024 * 1024,
  idempotency_wait_ms_max: 2_000,
  idempotency_look_ms: 50,
  webhook_connections_min: 1,
  webhook_secret_length_max: 256,
  body_bytes_max: 1024 * 1024,
  admin_target_length_max: 128,
  bots_ranked_max: 50,
  bots_looked_at_max: 1_024,
} as const;
