/**
 * Sets the limits of calls (interface §8): texts, names, keyboards and lists. Also sets limits that several layers
 * share.
 * Lengths count Unicode code points unless a name says otherwise.
 */
export const ruleLimits = {
  text_length_max: 4096,
  caption_length_max: 1024,
  markup_length_max: 256 * 1024,
  /**
   * The maximum number of markup characters, escapes, tags and references in one text. It must be at least 4,096,
   * because a text of 4,096 characters may escape every character.
   */
  markup_marks_max: 5_000,
  callback_data_bytes_max: 64,
  keyboard_buttons_max: 100,
  keyboard_placeholder_length_max: 64,
  copy_text_length_max: 256,
  button_query_bytes_max: 256,
  inline_placeholder_length_max: 64,
  inline_query_length_max: 256,
  inline_offset_bytes_max: 64,
  inline_results_max: 50,
  inline_result_id_bytes_max: 64,
  /**
   * The maximum length of an inline result's title, of its description, and of the text on the button above the
   * results.
   */
  inline_text_length_max: 256,
  inline_cache_s_default: 300,
  inline_cache_s_max: 86_400,
  code_language_length_max: 64,
  /** The maximum length of a link preview's URL in UTF-16 code units. */
  link_preview_url_length_max: 2_048,
  menu_button_text_length_max: 64,
  menu_button_url_bytes_max: 2_048,
  entities_max: 100,
  callback_answer_length_max: 200,
  bot_name_length_max: 64,
  bot_description_length_max: 512,
  bot_short_description_length_max: 120,
  username_length_min: 3,
  username_length_max: 32,
  person_name_length_max: 64,
  chat_title_length_max: 128,
  chat_description_length_max: 255,
  custom_title_length_max: 16,
  invite_link_name_length_max: 32,
  invite_link_members_max: 99_999,
  restriction_s_min: 30,
  restriction_s_max: 366 * 86_400,
  start_payload_length_max: 64,
  commands_max: 100,
  command_name_length_max: 32,
  command_description_length_max: 256,
  user_token_name_length_max: 64,
  /** The maximum number of digits of a bot id. The ids of webhook routes' queues depend on this number. */
  bot_id_length_max: 13,
  routes_max: 10,
  /** Route slots are not reused immediately, because the queue of a deleted route may still have updates. */
  route_slots_max: 30,
  /** The slot of a replay's queue. No route uses this slot. */
  replay_slot: 31,
  route_name_length_max: 32,
  route_chats_max: 100,
  route_commands_max: 100,
  /** A route with a percentage of 100 takes all chats. */
  route_percent_max: 100,
  /** The maximum size of all routes of one bot, as JSON. */
  routes_bytes_max: 16 * 1024,
  retry_first_delay_s_max: 3_600,
  retry_factor_max: 10,
  retry_age_s_min: 60,
  retry_age_s_max: 86_400,
  page_size_max: 100,
  page_size_default: 50,
  /** The maximum size of a list page's items as JSON, without the envelope of the answer. */
  page_bytes_max: 63 * 1024,
  preview_text_length_max: 128,
  search_query_bytes_max: 256,
  search_words_max: 8,
  /**
   * How many values one nested parameter may have. The limit is needed because a schema takes 2 µs to refuse each wrong
   * value.
   */
  json_values_max: 2_000,
  list_values_max: 10_000,
  /** How many values one JSON text, for instance a whole body, may have. */
  json_text_values_max: 11_000,
  album_items_min: 2,
  album_items_max: 10,
  media_url_length_max: 2_048,
  media_title_length_max: 256,
  object_text_length_max: 256,
  vcard_length_max: 2_048,
  live_period_s_min: 60,
  live_period_s_max: 86_400,
  /** The value of `live_period` for a live location that stays live until the bot stops it. */
  live_period_s_forever: 0x7fff_ffff,
  /**
   * How far an edit may postpone the end of a live location. The new end is at most `live_extension_s_max` after the
   * previous end, and at most `live_remaining_s_max` after the edit.
   */
  live_extension_s_max: 86_400,
  live_remaining_s_max: 90 * 86_400,
  live_heading_max: 360,
  live_alert_radius_m_max: 100_000,
  sticker_set_name_length_max: 64,
  sticker_set_title_length_max: 64,
  stickers_per_set_max: 120,
  /** How many stickers a set may have when it is created. */
  new_stickers_max: 50,
  sticker_emoji_max: 20,
  sticker_keywords_max: 20,
  /** The maximum total length of one sticker's keywords. */
  sticker_keywords_length_max: 64,
  poll_question_length_max: 300,
  poll_options_max: 12,
  poll_option_length_max: 100,
  poll_explanation_length_max: 200,
  poll_explanation_lines_max: 3,
  poll_open_s_min: 5,
  poll_open_s_max: 2_628_000,
  range_length_max: 256,
  id_max: 10_000_000_000_000,
  delivery_successes_kept: 100,
  /**
   * How many of a bot's latest delivery failures one call by an administrator reads. The call returns at most
   * `delivery_outcomes_max` different outcomes.
   */
  delivery_failures_looked_at_max: 1_000,
  delivery_outcomes_max: 50,
  delivery_answer_kept_bytes: 1_024,
  /** How many bytes of the receiver's answer to a ping are shown to the webhook's owner. */
  ping_answer_shown_bytes: 2_048,
  /** How long a stopping server waits for requests in flight. */
  shutdown_ms_max: 10_000,
  /**
   * How long the roles of a process may take to stop after DRAIN_MS has passed: 10 s for requests in flight, 2 s for
   * connections, and 10 s for a slow Redis or machine.
   */
  roles_stop_ms_max: 22_000,
  /** How long a process may take to close its connections and remove its records after its roles have stopped. */
  backends_close_ms_max: 5_000,
  external_subject_length_max: 255,
  message_days_min: 3,
  message_days_max: 3_650,
  hot_ttl_ms_min: 60_000,
  leak_reports_max: 10_000,
  dead_updates_counted_max: 100_000,
  keyboard_bytes_max: 16 * 1024,
  /**
   * How many messages of one chat may have a reply keyboard for mentioned members only. The oldest keyboards are
   * dropped.
   */
  chat_keyboards_max: 20,
  command_scopes_max: 100,
  messages_batch_max: 100,
  reactors_listed_max: 100,
  bots_per_owner_max: 1_000,
  user_tokens_max: 100,
  user_sessions_max: 30,
  suggestions_max: 10,
  rate_calls_max: 1_000_000,
  rate_seconds_max: 86_400,
  writers_per_bot_max: 1_000,
  partitions_max: 1_000,
  /** The count of unread messages stops at this number. */
  unread_counted_max: 100,
} as const;
