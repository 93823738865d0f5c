/** The limits of `petrel conformance`. */
export const conformanceLimits = {
  /** The time within which a server must answer a call, in ms. Long polls of the checks take less than a second. */
  conformance_call_ms_max: 30_000,
  conformance_answer_bytes_max: 8 * 1024 * 1024,
  /** How many times a call is repeated after 429 or 503. */
  conformance_repeats_max: 5,
  /** The longest `retry_after` that the client waits for, in seconds. */
  conformance_retry_after_s_max: 60,
  /** How many checks with invalid calls run concurrently. Checks that change something run one at a time. */
  conformance_refused_at_once: 8,
  conformance_run_ms_max: 15 * 60_000,
  /** The maximum length of the reason that is shown for a failure, in characters. */
  conformance_reason_length_max: 2_000,
} as const;
