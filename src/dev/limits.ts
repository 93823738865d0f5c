/** The limits of a private installation. */
export const devLimits = {
  postgres_copies_max: 3,
  postgres_copy_age_ms_max: 3_600_000,
} as const;
