/** Limits the size of responses. */
export const wireLimits = {
  leak_token_length_max: 256,
  leak_url_length_max: 4_096,
  /** How many bytes of process reports are shown with all details. This is enough for about fifty fronts. */
  nodes_report_bytes_max: 512 * 1024,
  nodes_shown_max: 500,
} as const;
