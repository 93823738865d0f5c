/** The limits for the external identity provider. */
export const identityLimits = {
  jwt_length_max: 8 * 1024,
  jwt_leeway_ms: 10_000,
  jwks_bytes_max: 256 * 1024,
  jwks_read_ms_max: 5_000,
  jwks_cooldown_ms: 30_000,
  jwks_refresh_ms: 10 * 60_000,
  jwks_age_ms_max: 24 * 3_600_000,
  /** The maximum size and duration of each answer from the provider during a sign-in. */
  provider_answer_bytes_max: 256 * 1024,
  provider_answer_ms_max: 5_000,
  /** How long the provider's metadata are cached, and how long a failure to read them is cached, in ms. */
  provider_metadata_ms_max: 10 * 60_000,
  provider_cooldown_ms: 2_000,
  /** How long a person may take at the provider, in ms. */
  sign_in_ms_max: 10 * 60_000,
  sign_in_record_length_max: 2_048,
  sign_in_answer_length_max: 8_192,
  /** How many sign-ins one front finishes at the same time. */
  sign_ins_at_once: 16,
} as const;
