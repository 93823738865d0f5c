/** Sets the limits for the external identity provider. */
export const identityLimits = {
  jwt_length_max: 8 * 1024,
  jwt_leeway_ms: 10_000,
  jwks_bytes_max: 256 * 1024,
  jwks_read_ms_max: 5_000,
  jwks_cooldown_ms: 30_000,
  jwks_refresh_ms: 10 * 60_000,
  jwks_age_ms_max: 24 * 3_600_000,
} as const;
