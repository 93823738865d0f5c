/** The limits of the reports by processes and of the operations page. */
export const processLimits = {
  /** The maximum age of the count of pending work, in ms. Metrics reuse a count up to this age. */
  backlog_age_ms_max: 1_000,
  /**
   * How long a scrape of metrics waits for the count of pending work in Redis, in ms. After that, the scrape uses the
   * last known count.
   */
  backlog_wait_ms_max: 2_000,
  /**
   * How often a process reports to the operations page, in ms. A process that has not reported for `node_silent_ms`
   * counts as silent. After `node_age_ms_max` without a report, the process counts as ended.
   */
  node_tell_ms: 2_000,
  node_silent_ms: 7_000,
  node_age_ms_max: 30_000,
  node_calls_reported_max: 40,
  /**
   * The history of the operations page: the interval between two points, the number of points, and the maximum size of
   * a point. Together the points cover an hour. A point has about 300 bytes, however many processes there are.
   */
  history_step_ms: 5_000,
  history_points_max: 720,
  history_point_bytes_max: 2_048,
  /** The maximum time and size of an answer from Prometheus, and how long the answer is reused. */
  prometheus_wait_ms_max: 8_000,
  prometheus_answer_bytes_max: 4 * 1024 * 1024,
  prometheus_age_ms_max: 15_000,
  /** The shortest window over which rates from Prometheus are averaged, in ms. It must contain several scrapes. */
  prometheus_window_ms_min: 120_000,
  /** How long a webhook must fail before it becomes a finding, and the maximum number of such findings. */
  failing_finding_ms: 60_000,
  failing_findings_max: 20,
  operations_look_ms: 1_000,
  operations_wait_ms_max: 3_000,
} as const;
