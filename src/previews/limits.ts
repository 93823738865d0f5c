/** Sets the limits of link previews. */
export const previewLimits = {
  /** How many bytes of a page are read, and how long this may take, redirects included. */
  preview_page_bytes_max: 256 * 1024,
  preview_ms_max: 5_000,
  preview_redirects_max: 3,
  /** How many pages one front loads at the same time, per person and in total. Further calls wait in order. */
  preview_loads_per_person_at_once: 2,
  preview_loads_per_person_waiting_max: 20,
  preview_loads_at_once: 16,
  preview_loads_waiting_max: 48,
  /** In code points. */
  preview_title_length_max: 200,
  preview_description_length_max: 300,
  preview_site_name_length_max: 64,
} as const;
