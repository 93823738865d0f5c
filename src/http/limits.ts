/** Sets the limits of requests: heads, bodies, connections and shutdown. */
export const httpLimits = {
  upload_bytes_max: 50 * 1024 * 1024,
  /**
   * The minimum and the maximum memory for all request bodies. Within these limits, bodies may use a quarter of a
   * front's memory.
   */
  bodies_bytes_min: 128 * 1024 * 1024,
  bodies_bytes_max: 1024 * 1024 * 1024,
  /**
   * How many bytes the bodies of requests without a valid token may have: from all addresses together, and from one
   * address.
   */
  strangers_bodies_bytes_max: 32 * 1024 * 1024,
  stranger_bodies_bytes_max: 8 * 1024 * 1024,
  /** The number of reusable buffers for large bodies in one front. Each buffer has `body_bytes_max` bytes. */
  reused_bodies_max: 32,
  head_bytes_max: 64 * 1024,
  body_idle_ms_max: 30_000,
  stream_buffer_bytes_max: 1024 * 1024,
  /** How many bytes all event streams of a front may buffer for slow clients. */
  streams_buffer_bytes_max: 256 * 1024 * 1024,
  /**
   * How many bytes of large replies may wait for clients that read slowly: for all callers together, and for one bot,
   * person or address.
   */
  held_replies_bytes_max: 256 * 1024 * 1024,
  caller_held_replies_bytes_max: 32 * 1024 * 1024,
  /** How long a large reply counts if the engine does not report its end. */
  held_reply_ms: 60_000,
  /** How long a stream that ends may still send buffered text to its client. */
  stream_end_ms_max: 2_000,
  connection_quiet_ms: 250,
  connection_linger_ms_max: 2_000,
} as const;
