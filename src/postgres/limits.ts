/** Sets the limits for Postgres: statements, replicas, shards and copies. */
export const postgresLimits = {
  /** The number of rows in the table control_marks. */
  control_mark_shards: 64,
  /**
   * How many ids to skip after Postgres was restored to an earlier state, counted from the highest id that is known to
   * be in use.
   */
  postgres_sequence_skip: 10_000,
  /** How long reads avoid a Postgres replica after it has failed. */
  postgres_replica_rest_ms: 1_000,
  postgres_statement_timeout_ms: 10_000,
  /** How often a process checks for a newer shard map, and for how long after a check it may use its map. */
  shard_map_look_ms: 1_000,
  shard_map_age_ms_max: 5_000,
  /**
   * How often a process without DATABASE_SHARDS checks for a newer shard map, and for how long after a check it may use
   * its map.
   */
  shard_map_idle_look_ms: 10_000,
  shard_map_idle_age_ms_max: 25_000,
  webhook_failing_ms: 3_600_000,
  /** For how long after its last report a node counts as a user of its Redis. */
  redis_node_age_ms_max: 10_000,
  /** How long to wait between two notices about the same report of leaked tokens, in ms. */
  leak_notice_interval_ms: 2,
  /**
   * The maximum size in bytes of all command lists of a bot together, as JSON. This is enough for one full list of
   * commands in 4-byte characters.
   */
  commands_bytes_max: 128 * 1024,
  bots_per_chat_max: 50,
  administrators_per_chat_max: 100,
  banned_per_chat_max: 10_000,
  chats_per_user_max: 5_000,
  /**
   * One person may create at least this many bots in 24 hours, even if BOTS_PER_OWNER is lower. Deleted bots count too.
   */
  bots_created_per_day_min: 100,
  /** How often per day strangers may add the same person to chats, and how many people one stranger may add per day. */
  stranger_adds_per_day_max: 10,
  strangers_added_per_day_max: 50,
  /**
   * How many chats with strangers one person may open per day, and how many strangers may open a chat with one person
   * per day.
   */
  stranger_chats_opened_per_day_max: 50,
  stranger_chats_received_per_day_max: 200,
  /**
   * How many chats other people may open with one person. These chats do not count against the person's
   * `chats_per_user_max`.
   */
  chats_opened_by_others_max: 1_000,
  blocked_people_max: 1_000,
  /** How many open invitations one person may have, in total and from one inviter. */
  invitations_per_user_max: 100,
  invitations_per_inviter_max: 10,
  invitation_age_ms_max: 30 * 24 * 3_600_000,
  declined_invitations_max: 1_000,
  /** How many scheduled posts one channel or one person may have, and how large these posts may be together. */
  scheduled_posts_per_chat_max: 100,
  scheduled_posts_bytes_per_chat_max: 1024 * 1024,
  scheduled_posts_per_person_max: 200,
  scheduled_posts_bytes_per_person_max: 2 * 1024 * 1024,
  /** How many invite links one chat may have: links in use, and revoked links. */
  links_per_chat_max: 100,
  revoked_links_per_chat_max: 100,
  /**
   * How many join requests may be pending in one chat, and from one person. A request has a fixed size of less than 200
   * bytes.
   */
  join_requests_per_chat_max: 10_000,
  join_requests_per_user_max: 100,
  join_request_age_ms_max: 30 * 24 * 3_600_000,
  /**
   * How many of a chat's events may wait to be posted. Events wait only while Redis cannot accept them. An event takes
   * less than 10 KiB.
   */
  member_events_per_chat_max: 1_000,
  message_head_bytes_max: 96,
} as const;
