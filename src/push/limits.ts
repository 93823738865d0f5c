/** The limits of push notifications and of the records of open browser windows. */
export const pushLimits = {
  push_endpoint_length_max: 1_024,
  push_title_length_max: 100,
  push_text_length_max: 300,
  /** How long a push service keeps a notification while the browser is offline, in seconds. */
  push_ttl_s: 24 * 3_600,
  /**
   * For how many chats a flusher keeps the newest message in memory until the notifications about this message are
   * recorded.
   */
  push_chats_waiting_max: 20_000,
  push_in_flight_max: 64,
  push_person_in_flight_max: 2,
  push_deadline_ms: 10_000,
  /**
   * How long a token that identifies the installation to a push service is valid (RFC 8292 allows up to 24 h), and how
   * many tokens are cached.
   */
  push_vapid_ttl_s: 12 * 3_600,
  push_vapid_kept_max: 1_000,
} as const;
