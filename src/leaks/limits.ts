/** The limits for reports of leaked tokens. */
export const leakLimits = {
  leak_body_bytes_max: 8 * 1024 * 1024,
  leak_keys_ms_max: 5_000,
  leak_keys_bytes_max: 1024 * 1024,
  leak_keys_age_ms_max: 3_600_000,
  leak_keys_interval_ms_min: 30_000,
} as const;
