/** The limits of files and pictures. */
export const fileLimits = {
  file_name_length_max: 128,
  measure_ms_max: 2_000,
  measure_wait_ms_max: 6_000,
  measure_waiting_max: 64,
  measure_waiting_bytes_max: 256 * 1024 * 1024,
  /**
   * The maximum number and total size of one owner's files that wait to be measured. An album of up to 10 files fits
   * within both limits.
   */
  measure_waiting_own_max: 20,
  measure_waiting_own_bytes_max: 96 * 1024 * 1024,
  picture_bytes_max: 10 * 1024 * 1024,
  picture_pixels_max: 32_000_000,
  picture_make_ms_max: 5_000,
  picture_wait_ms_max: 6_000,
  pictures_waiting_max: 64,
  pictures_waiting_bytes_max: 256 * 1024 * 1024,
  /**
   * The maximum number and total size of one owner's pictures that wait to be processed. An album needs up to 10
   * thumbnails, which fit within both limits.
   */
  pictures_waiting_own_max: 16,
  pictures_waiting_own_bytes_max: 96 * 1024 * 1024,
  avatar_side_px: 512,
  avatar_small_side_px: 128,
  avatar_given_side_px_min: 32,
  avatar_given_aspect_max: 20,
  /**
   * The maximum sum of the width and height of a photo, and the maximum ratio of its longer side to its shorter side.
   */
  photo_sides_px_max: 10_000,
  photo_aspect_max: 20,
  thumbnail_side_px_max: 320,
  video_note_bytes_max: 12 * 1024 * 1024,
  video_note_side_px_max: 640,
  sticker_bytes_max: 512 * 1024,
  sticker_side_px: 512,
  start_picture_width_px: 640,
  start_picture_height_px: 360,
  unused_files_sweep_ms: 60_000,
  download_chunk_bytes: 64 * 1024,
} as const;
