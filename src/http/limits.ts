/** The limits of requests: heads, bodies, connections and shutdown. */
export const httpLimits = {
  upload_bytes_max: 50 * 1024 * 1024,
  /** The memory for all request bodies is a quarter of a front's memory, within these bounds. */
  bodies_bytes_min: 128 * 1024 * 1024,
  bodies_bytes_max: 1024 * 1024 * 1024,
  /**
   * How many bytes the bodies of requests without a valid token may use: from all addresses together, and from one
   * address.
   */
  strangers_bodies_bytes_max: 32 * 1024 * 1024,
  stranger_bodies_bytes_max: 8 * 1024 * 1024,
  /** The number of reusable buffers for large bodies in one front. Each has `body_bytes_max` bytes. */
  reused_bodies_max: 32,
  head_bytes_max: 64 * 1024,
  body_idle_ms_max: 30_000,
  stream_buffer_bytes_max: 1024 * 1024,
  /** How many bytes a front may buffer for slow clients, over all event streams. */
  streams_buffer_bytes_max: 256 * 1024 * 1024,
  /**
   * How many bytes of large replies may wait for slow clients: of all callers together, and of one bot, person or
   * address.
   */
  held_replies_bytes_max: 256 * 1024 * 1024,
  caller_held_replies_bytes_max: 32 * 1024 * 1024,
  /** How long a large reply is counted if the engine does not report its end, in ms. */
  held_reply_ms: 60_000,
  /** How long an ending stream may still send buffered text to its client, in ms. */
  stream_end_ms_max: 2_000,
  connection_quiet_ms: 250,
  connection_linger_ms_max: 2_000,
} as const;
