/** The numbers of notifications, and of what is known of open windows for their sake; part of `limits`. */
export const pushLimits = {
  /** How long a note says that a person has a window open, and how often it is renewed. */
  presence_ttl_ms: 25_000,
  presence_renew_ms: 8_000,
  presence_batch_max: 500,
  push_subscriptions_max: 10,
  push_endpoint_length_max: 1_024,
  push_title_length_max: 100,
  push_text_length_max: 300,
  /** A message is not told once it is older. */
  push_age_ms_max: 10 * 60_000,
  /** How long a push service keeps a push for a browser that is away. */
  push_ttl_s: 24 * 3_600,
  push_gap_ms: 10_000,
  push_recipients_max: 10_000,
  push_due_max: 100_000,
  /** Chats whose newest message a flusher holds until it is noted. */
  push_chats_waiting_max: 20_000,
  push_in_flight_max: 64,
  push_person_in_flight_max: 2,
  push_deadline_ms: 10_000,
  push_failures_max: 10,
  /** Lives of the tokens by which push services know the installation (RFC 8292: at most 24 h), and how many are kept. */
  push_vapid_ttl_s: 12 * 3_600,
  push_vapid_kept_max: 1_000,
} as const;
