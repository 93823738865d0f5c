/** Sets the limits of link previews. */
export const previewLimits = {
  /** How many bytes of a page are read, and how long this may take, redirects included. */
  preview_page_bytes_max: 256 * 1024,
  preview_ms_max: 4_000,
  preview_redirects_max: 3,
  /**
   * How many pages one front loads in parallel, and how many further calls wait: in total, and per person. A front loads
   * one page for a person at a time.
   */
  preview_loads_at_once: 16,
  preview_loads_waiting_max: 48,
  preview_loads_per_person_waiting_max: 20,
  preview_wait_ms_max: 5_000,
  /** How many pages of one host a front loads in parallel. Further loads are refused. */
  preview_loads_per_host_at_once: 8,
  /** In code points. */
  preview_title_length_max: 200,
  preview_description_length_max: 300,
  preview_site_name_length_max: 64,
} as const;
