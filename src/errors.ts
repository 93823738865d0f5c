/** Lists all error responses. They are documented in `infra/docs/api.md`. */

interface Entry {
  readonly code: number;
  readonly text: string;
}

const bad = (text: string): Entry => ({ code: 400, text: `Bad Request: ${text}` });
const forbidden = (text: string): Entry => ({ code: 403, text: `Forbidden: ${text}` });
const conflict = (text: string): Entry => ({ code: 409, text: `Conflict: ${text}` });

const notModified =
  'message is not modified: specified new message content and reply markup are exactly the same as a ' +
  'current content and reply markup of the message';

export const catalogue = {
  // Errors about the request itself
  bad_request: { code: 400, text: 'Bad Request' },
  bad_json: bad("can't parse JSON object"),
  bad_unicode: bad('strings must be encoded in UTF-8'),
  too_many_parameters: bad('too many parameters'),
  unauthorized: { code: 401, text: 'Unauthorized' },
  not_found: { code: 404, text: 'Not Found' },
  method_not_found: { code: 404, text: 'Not Found: method not found' },
  method_not_allowed: { code: 405, text: 'Method Not Allowed' },
  idempotency_key_reused: bad('idempotency key was used with other parameters'),
  too_large: { code: 413, text: 'Request Entity Too Large' },
  range_not_satisfiable: { code: 416, text: 'Range Not Satisfiable' },
  too_many_requests: { code: 429, text: 'Too Many Requests: retry after {retry_after}' },
  internal: { code: 500, text: 'Internal Server Error' },
  leaving: { code: 502, text: 'Bad Gateway: this node is leaving, another one serves' },
  not_durable: { code: 503, text: 'Service Unavailable: the change may be lost, retry after {retry_after}' },
  unavailable: { code: 503, text: 'Service Unavailable: retry after {retry_after}' },

  // Errors about identities
  language_invalid: bad('invalid language code specified'),
  username_invalid: bad('username is invalid'),
  username_taken: bad('username is already taken'),
  name_invalid: bad('name is invalid'),
  name_too_long: bad('name is too long'),
  description_too_long: bad('description is too long'),
  short_description_too_long: bad('short description is too long'),
  title_invalid: bad('title is invalid'),
  too_many_bots: bad('too many bots'),
  command_invalid: bad('BOT_COMMAND_INVALID'),
  command_description_invalid: bad('BOT_COMMAND_DESCRIPTION_INVALID'),
  too_many_commands: bad('BOT_COMMANDS_TOO_MUCH'),
  too_many_command_scopes: bad('too many command scopes'),
  commands_too_long: bad('bot commands are too long'),
  address_not_allowed: forbidden('administrators may not call from this address'),
  not_bot_owner: forbidden('not the owner of the bot'),
  token_blocked: forbidden('the token was found in public and is blocked; issue a new one'),
  bot_not_found: { code: 404, text: 'Not Found: bot not found' },
  too_many_tokens: bad('too many tokens'),
  too_many_pinned_chats: bad('too many pinned chats'),
  token_name_taken: bad('token name is already taken'),
  token_not_found: { code: 404, text: 'Not Found: token not found' },
  session_not_found: { code: 404, text: 'Not Found: session not found' },
  sign_up_closed: forbidden('sign-up is closed'),
  sign_in_expired: bad('the sign-in has expired, begin again'),
  sign_in_refused: forbidden('the identity provider did not confirm the sign-in'),
  account_missing: forbidden('there is no account for this person'),
  account_suspended: forbidden('the account is suspended'),
  identity_provider_unavailable: {
    code: 503,
    text: 'Service Unavailable: the identity provider gave no valid answer',
  },
  push_off: bad('push notifications are off'),
  link_previews_off: bad('link previews are off'),
  push_subscription_invalid: bad('invalid push subscription specified'),
  subject_taken: bad('external subject is already taken'),
  subject_invalid: bad('external subject is invalid'),
  no_identity_provider: bad('no identity provider is set'),
  no_prometheus: bad('no Prometheus is set'),
  user_not_found: { code: 404, text: 'Not Found: user not found' },
  username_unknown: bad('user @{name} not found'),
  username_not_person: bad('@{name} is not a user'),
  transfer_to_self: bad('the bot is yours already'),
  recipient_suspended: bad('the new owner is suspended'),
  recipient_too_many_bots: bad('the new owner has too many bots'),
  transfer_not_found: { code: 404, text: 'Not Found: transfer not found' },
  username_not_reserved: { code: 404, text: 'Not Found: username is not reserved' },
  cant_write_to_bot: forbidden("you can't write to this bot"),
  cant_write_to_person: forbidden("you can't write to this person"),
  cant_add_person: forbidden("you can't add this person"),
  person_blocked_by_you: forbidden('you blocked this person'),
  too_many_blocked_people: bad('too many blocked people'),

  // Errors about chats and rights
  chat_id_empty: bad('chat_id is empty'),
  chat_id_invalid: bad('invalid chat_id specified'),
  user_id_invalid: bad('invalid user_id specified'),
  chat_not_found: bad('chat not found'),
  unknown_chat: { code: 404, text: 'Not Found: chat not found' },
  draft_not_private: bad('message drafts can be sent only to private chats'),
  draft_not_found: { code: 404, text: 'Not Found: message draft not found' },
  chat_action_invalid: bad('wrong parameter action in request'),
  not_group_member: forbidden('bot is not a member of the group chat'),
  not_channel_member: forbidden('bot is not a member of the channel chat'),
  bot_blocked: forbidden('bot was blocked by the user'),
  bot_blocked_by_you: forbidden('you blocked this bot'),
  not_a_channel: bad('posts can be scheduled in channels only'),
  schedule_time_wrong: bad('a post can be scheduled 1 minute to 365 days ahead'),
  too_many_scheduled_posts: bad('too many scheduled posts'),
  scheduled_post_not_found: { code: 404, text: 'Not Found: scheduled post not found' },
  scheduled_post_publishing: bad('the scheduled post is being published'),
  publication_unknown: bad('it is unknown whether the scheduled post was published'),
  posting_not_allowed: bad('need administrator rights in the channel chat'),
  pin_not_allowed: bad('not enough rights to manage pinned messages in the chat'),
  cant_initiate: forbidden("bot can't initiate conversation with a user"),
  not_chat_member: forbidden('user is not a member of the chat'),
  not_enough_rights: bad('not enough rights'),
  too_many_chat_bots: bad('too many bots in the chat'),
  too_many_chats: bad('too many chats'),
  too_many_administrators: bad('too many administrators in the chat'),
  cant_restrict: bad('not enough rights to restrict/unrestrict chat member'),
  cant_restrict_self: bad("can't restrict self"),
  cant_promote_self: bad("can't promote self"),
  cant_remove_owner: bad("can't remove chat owner"),
  member_is_administrator: bad('user is an administrator of the chat'),
  member_not_administrator: bad('user is not an administrator'),
  only_creator_title: bad('only creator can edit their custom title'),
  cant_change_title: bad('not enough rights to change custom title of the user'),
  custom_title_too_long: bad('ADMIN_RANK_INVALID'),
  custom_title_emoji: bad('ADMIN_RANK_EMOJI_NOT_ALLOWED'),
  right_forbidden: bad('RIGHT_FORBIDDEN'),
  not_participant: bad('USER_NOT_PARTICIPANT'),
  person_banned: bad('USER_KICKED'),
  too_many_banned: bad('too many banned members in the chat'),
  permissions_not_allowed: bad('not enough rights to change chat permissions'),
  private_chat_permissions: bad("can't change private chat permissions"),
  channel_permissions: bad("can't change channel chat permissions"),
  private_chat_ban: bad("can't ban members in private chats"),
  groups_only: bad('method is available only for supergroups'),
  shared_chats_only: bad('method is available for supergroup and channel chats only'),
  sending_not_permitted: bad('not enough rights to send {what} to the chat'),
  invitation_not_found: { code: 404, text: 'Not Found: invitation not found' },
  invitation_declined: bad('user declined the invitation'),
  too_many_invitations: bad('user has too many invitations'),
  private_chat_links: bad("can't invite members to a private chat"),
  invite_links_not_allowed: bad('not enough rights to manage chat invite link'),
  member_limit_with_requests: bad(
    "member limit can't be specified for links requiring administrator approval",
  ),
  link_name_too_long: bad('invite link name is too long'),
  link_expiry_invalid: bad('EXPIRE_DATE_INVALID'),
  member_limit_invalid: bad('USAGE_LIMIT_INVALID'),
  too_many_invite_links: bad('INVITES_TOO_MUCH'),
  invite_link_empty: bad('invite link must be non-empty'),
  invite_link_expired: bad('INVITE_HASH_EXPIRED'),
  invite_link_primary: bad('CHAT_INVITE_PERMANENT'),
  private_chat_requests: bad("the chat can't have join requests"),
  join_requests_not_allowed: bad('not enough rights to manage chat join requests'),
  already_participant: bad('USER_ALREADY_PARTICIPANT'),
  join_request_missing: bad('HIDE_REQUESTER_MISSING'),
  join_request_not_found: { code: 404, text: 'Not Found: join request not found' },
  too_many_join_requests: bad('too many join requests'),
  kicked_from_chat: forbidden('user was kicked from the chat'),
  creator_cant_leave: bad("the creator can't leave the chat"),
  title_not_allowed: bad('not enough rights to change chat title'),
  about_not_allowed: bad('not enough rights to set chat description'),
  about_not_modified: bad('chat description is not modified'),
  photo_not_allowed: bad('not enough rights to change chat photo'),
  chat_not_modified: bad('CHAT_NOT_MODIFIED'),
  private_chat_title: bad("can't change private chat title"),
  private_chat_description: bad("can't change private chat description"),
  private_chat_photo: bad("can't change private chat photo"),
  chat_member_not_found: bad('user not found'),
  private_chat_members: bad("chat member status can't be changed in private chats"),
  private_chat_administrators: bad('there are no administrators in the private chat'),

  // Errors about messages
  text_empty: bad('message text is empty'),
  text_too_long: bad('message is too long'),
  caption_too_long: bad('message caption is too long'),
  parse_mode_unsupported: bad('unsupported parse_mode'),
  entities_unparsable: bad("can't parse entities: {reason}"),
  entities_too_long: bad('ENTITIES_TOO_LONG'),
  keyboard_unparsable: bad("can't parse reply keyboard markup JSON object"),
  button_data_invalid: bad('BUTTON_DATA_INVALID'),
  button_text_invalid: bad('BUTTON_TEXT_INVALID'),
  menu_button_unparsable: bad("can't parse menu button JSON object"),
  menu_button_unsupported: bad("can't parse menu button: MenuButton has unsupported type"),
  reply_button_text_empty: bad('keyboard button text is empty'),
  placeholder_too_long: bad('input field placeholder is too long'),
  button_text_empty: bad('inline keyboard button text is empty'),
  button_type_invalid: bad('BUTTON_TYPE_INVALID'),
  button_url_invalid: bad('BUTTON_URL_INVALID'),
  button_copy_text_invalid: bad('BUTTON_COPY_TEXT_INVALID'),
  button_query_invalid: bad('BUTTON_QUERY_INVALID'),
  keyboard_too_large: bad('reply markup is too long'),
  reply_not_found: bad('message to be replied not found'),
  message_to_edit_not_found: bad('message to edit not found'),
  message_cant_be_edited: bad("message can't be edited"),
  no_text_to_edit: bad('there is no text in the message to edit'),
  no_live_location_to_edit: bad('there is no live location in the message to edit'),
  live_period_wrong: bad('wrong live location period specified'),
  live_heading_wrong: bad('wrong live location heading specified'),
  live_alert_radius_wrong: bad('wrong live location proximity alert radius specified'),
  no_caption_to_edit: bad('there is no caption in the message to edit'),
  media_cant_be_edited: bad("message media can't be edited"),
  message_not_modified: bad(notModified),
  message_to_pin_not_found: bad('message to pin not found'),
  message_to_unpin_not_found: bad('message to unpin not found'),
  service_cant_be_pinned: bad("service messages can't be pinned"),
  message_to_forward_not_found: bad('message to forward not found'),
  message_to_copy_not_found: bad('message to copy not found'),
  forward_protected: bad("message has protected content and can't be forwarded"),
  copy_protected: bad("message has protected content and can't be copied"),
  message_ids_empty: bad('message identifiers are not specified'),
  too_many_message_ids: bad('too many message identifiers specified'),
  nothing_to_forward: bad('there are no messages to forward'),
  message_to_delete_not_found: bad('message to delete not found'),
  message_cant_be_deleted: bad("message can't be deleted"),
  bots_cant_react: bad("bots can't set reactions"),
  message_not_found: { code: 404, text: 'Not Found: message not found' },
  button_not_found: bad('button not found'),
  callback_answer_too_long: bad('MESSAGE_TOO_LONG'),
  query_too_old: bad('query is too old and response timeout expired or query ID is invalid'),

  poll_text_empty: bad('text must be non-empty'),
  poll_question_too_long: bad('poll question length must not exceed {what}'),
  poll_options_unparsable: bad("can't parse options JSON object"),
  poll_without_options: bad('poll must have at least one answer option'),
  too_many_poll_options: bad("poll can't have more than {what} options"),
  poll_option_too_long: bad('poll options length must not exceed {what}'),
  poll_type_unsupported: bad('unsupported poll type specified'),
  poll_correct_option_wrong: bad('wrong correct option ID specified'),
  poll_explanation_too_long: bad('poll explanation is too long'),
  poll_public_in_channel: bad("non-anonymous polls can't be sent to channel chats"),
  poll_to_stop_not_found: bad('message with poll to stop not found'),
  message_not_poll: bad('message is not a poll'),
  poll_cant_be_stopped: bad("poll can't be stopped"),
  poll_closed: bad('poll has already been closed'),
  poll_cant_be_copied: bad("message can't be copied"),
  poll_not_found: { code: 404, text: 'Not Found: poll not found' },
  vote_final: bad("vote can't be changed"),
  vote_options_wrong: bad('invalid option ID specified'),

  bot_not_inline: bad('bot does not answer inline queries'),
  inline_unanswered: bad('BOT_RESPONSE_TIMEOUT'),
  inline_result_not_found: { code: 404, text: 'Not Found: inline result not found' },
  inline_message_invalid: bad('MESSAGE_ID_INVALID'),
  too_many_inline_results: bad('too many inline query results specified'),
  inline_result_invalid: bad("can't parse inline query result: {reason}"),
  inline_answer_too_big: bad('inline query answer is too big'),
  inline_offset_invalid: bad('NEXT_OFFSET_INVALID'),
  inline_button_invalid: bad("can't parse inline query results button: {reason}"),

  // Errors about files
  wrong_file_id: bad('wrong file identifier/HTTP URL specified'),
  file_type_mismatch: bad("can't use file of type {name} as {what}"),
  file_empty: bad('file must be non-empty'),
  too_much_stored: bad('stored files of the owner would exceed {what} bytes'),
  no_photo: bad('there is no photo in the request'),
  photo_not_uploaded: bad('photo must be uploaded as an InputFile'),
  photo_invalid: bad('IMAGE_PROCESS_FAILED'),
  sticker_type_invalid: bad('STICKER_PNG_NOPNG'),
  sticker_sides_invalid: bad('STICKER_PNG_DIMENSIONS'),
  sticker_keywords_invalid: bad('sticker keywords are invalid: up to 20, with up to 64 characters together'),
  sticker_format_unsupported: bad('only static stickers are supported'),
  sticker_type_unsupported: bad('only regular sticker sets are supported'),
  sticker_user_not_found: bad('user not found'),
  sticker_set_invalid: bad('STICKERSET_INVALID'),
  sticker_set_not_modified: bad('STICKERSET_NOT_MODIFIED'),
  sticker_set_name_invalid: bad('invalid sticker set name is specified'),
  sticker_set_name_taken: bad('sticker set name is already occupied'),
  sticker_set_title_invalid: bad('PACK_TITLE_INVALID'),
  sticker_in_set: bad('sticker is already in the set'),
  stickers_empty: bad('STICKERS_EMPTY'),
  too_many_stickers: bad('STICKERS_TOO_MUCH'),
  too_many_sticker_sets: bad('too many sticker sets'),
  sticker_emoji_invalid: bad('invalid sticker emojis'),
  video_note_invalid: bad('video note must be a square video with sides of up to 640 pixels'),
  file_too_big: bad('file is too big'),
  emoji_invalid: bad('EMOTICON_INVALID'),
  picture_type_invalid: bad('picture must be a PNG, JPEG or WebP image'),
  picture_animated: bad('picture must not be animated'),
  picture_too_large: bad('picture has too many pixels'),
  picture_too_small: bad('picture is too small'),
  start_picture_size: bad('start picture must be 640x360 pixels'),
  picture_not_found: { code: 404, text: 'Not Found: picture not found' },
  album_mixed: bad("{name} can't be mixed with other media types"),

  // Errors about posts
  reaction_invalid: bad('invalid reaction specified'),
  too_many_reactions: bad('too many reactions'),
  post_not_found: { code: 404, text: 'Not Found: post not found' },

  // Errors about updates
  poll_while_webhook: conflict(
    "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
  ),
  poll_while_consumers: conflict("can't use getUpdates method without consumer while consumers are active"),
  poll_terminated_by_poll: conflict(
    'terminated by other getUpdates request; make sure that only one bot instance is running',
  ),
  poll_terminated_by_webhook: conflict('terminated by setWebhook request'),

  // Errors about webhooks
  webhook_url_not_https: bad('bad webhook: An HTTPS URL must be provided for webhook'),
  webhook_url_invalid: bad('invalid webhook URL specified'),
  webhook_port_refused: bad('bad webhook: port {what} is not allowed'),
  webhook_address_reserved: bad('bad webhook: IP address {what} is reserved'),
  webhook_host_unresolved: bad('bad webhook: Failed to resolve host: {reason}'),
  webhook_secret_too_long: bad('secret token is too long'),
  webhook_secret_invalid: bad('secret token contains unallowed characters'),
  webhook_connections_wrong: bad('max_connections must be between 1 and 100'),
  retry_policy_invalid: bad(
    'retry_policy must have first_delay from 1 to 3600, factor from 1 to 10 and max_age from 60 to 86400',
  ),
  route_name_invalid: bad('route name must have 1 to 32 letters, digits, hyphens and underscores'),
  route_position_invalid: bad('position must be from 1 to 10'),
  route_chats_invalid: bad('chat_ids must have 1 to 100 ids of chats'),
  route_commands_invalid: bad(
    'commands must have 1 to 100 commands of 1 to 32 lowercase letters, digits and underscores',
  ),
  route_percent_invalid: bad('percent must be from 1 to 100'),
  route_filters_exclusive: bad('chat_ids and percent cannot be used together'),
  too_many_routes: bad('too many webhook routes'),
  routes_too_large: bad('webhook routes are too large'),
  webhook_not_set: bad('webhook is not set'),
  deliveries_paused: forbidden('deliveries to the webhooks of the bot are paused'),
  replay_running: conflict('a replay of this bot is running'),
  replay_not_found: { code: 404, text: 'Not Found: replay not found' },
  route_not_found: { code: 404, text: 'Not Found: webhook route not found' },
  certificate_too_big: bad('certificate size is too big'),
  certificate_invalid: bad('bad webhook: certificate is not a valid PEM certificate'),

  // Errors about parameters, with the name of the parameter
  parameter_required: bad('parameter "{name}" is required'),
  parameter_unsupported: bad('parameter "{name}" is not supported'),
  parameter_wrong: bad('parameter "{name}" must be {what}'),
} as const satisfies Record<string, Entry>;

export type ErrorName = keyof typeof catalogue;

/**
 * The values for the placeholders in an error text. `retry_after` is in whole seconds and also appears in the answer's
 * `parameters`.
 */
export interface ErrorDetail {
  readonly retry_after?: number;
  readonly name?: string;
  readonly what?: string;
  readonly reason?: string;
}

/** An error whose text the caller may see. For any other error, the caller gets `internal`. */
export class ApiError extends Error {
  readonly kind: ErrorName;
  readonly code: number;
  readonly retryAfter: number | undefined;

  /**
   * `options.cause` is logged but never sent to the caller. The error has no stack, because creating a stack takes
   * longer than everything else that a refused call needs.
   */
  constructor(kind: ErrorName, detail: ErrorDetail = {}, options: ErrorOptions = {}) {
    const entry = catalogue[kind];
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(
      entry.text.replace(/\{(\w+)\}/g, (_, key: keyof ErrorDetail) => String(detail[key] ?? '')),
      options,
    );
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'ApiError';
    this.kind = kind;
    this.code = entry.code;
    this.retryAfter = detail.retry_after;
  }
}

export function fail(kind: ErrorName, detail?: ErrorDetail): never {
  throw new ApiError(kind, detail);
}

/** Returns the JSON body of an error response (interface §2, behaviour §1). */
export function errorEnvelope(error: ApiError): string {
  return JSON.stringify({
    ok: false,
    error_code: error.code,
    description: error.message,
    ...(error.retryAfter === undefined ? {} : { parameters: { retry_after: error.retryAfter } }),
  });
}
