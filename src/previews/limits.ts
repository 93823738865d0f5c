/** The limits of link previews. */
export const previewLimits = {
  /** How many bytes of a page are read, and how long this may take, redirects included. */
  preview_page_bytes_max: 256 * 1024,
  preview_ms_max: 4_000,
  preview_redirects_max: 3,
  /**
   * How many pages one front loads at the same time, and how many calls may wait to load a page, in total and from one
   * person. A front loads only one page at a time for one person.
   */
  preview_loads_at_once: 16,
  preview_loads_waiting_max: 48,
  preview_loads_per_person_waiting_max: 20,
  preview_wait_ms_max: 5_000,
  /** How many pages of one host a front loads at the same time. Further loads are refused. */
  preview_loads_per_host_at_once: 8,
  /** The maximum lengths of the texts in a preview, in code points. */
  preview_title_length_max: 200,
  preview_description_length_max: 300,
  preview_site_name_length_max: 64,
} as const;
