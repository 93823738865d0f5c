/** The limits of `petrel bench`. */
export const loadtestLimits = {
  bench_rate_max: 10_000,
  bench_seconds_max: 600,
  bench_connections_max: 1_000,
} as const;
