/** Sets the limits for the reports of processes and for the operations page. */
export const processLimits = {
  /** How old the count of pending work in Redis may be when metrics are read. */
  backlog_age_ms_max: 1_000,
  /** How long a reader of metrics waits for the count of pending work. Then it gets the last known count. */
  backlog_wait_ms_max: 2_000,
  /**
   * How often a process reports to the operations page, and how long without a report it counts as silent or as ended.
   */
  node_tell_ms: 2_000,
  node_silent_ms: 7_000,
  node_age_ms_max: 30_000,
  node_calls_reported_max: 40,
  operations_look_ms: 1_000,
  operations_wait_ms_max: 3_000,
} as const;
