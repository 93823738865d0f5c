/** Limits the size of responses. */
export const wireLimits = {
  leak_token_length_max: 256,
  leak_url_length_max: 4_096,
  /**
   * The maximum size of the process reports that are shown with all details, in bytes. About fifty reports of fronts
   * fit.
   */
  nodes_report_bytes_max: 512 * 1024,
  nodes_shown_max: 500,
} as const;
