/**
 * Contains the texts of the OpenAPI document: the introduction, and descriptions of parameters that many calls share.
 */
import { limits } from '../limits.js';

export const introduction = `Petrel is a self-hosted messaging service for bots.

**Bots** call \`/bot<token>/<method>\` by GET or POST, with parameters in the query, as JSON, url-encoded or multipart.
Method names ignore case. In a query or a form, a nested value may be JSON text, an integer numeric text, and a boolean
\`true\`, \`false\`, \`1\` or \`0\`. Unknown parameters are ignored.

**People** and **operators** call \`/api/…\` with \`Authorization: Bearer <token>\`.

Every answer is \`{ok: true, result}\` or \`{ok: false, error_code, description}\`, and the HTTP status equals
\`error_code\`. For 429 and 503, \`parameters.retry_after\` is the number of seconds to wait before a retry.`;

export const idempotencyText = `A text that the caller chooses, up to ${limits.idempotency_key_length_max} characters. For 24 hours, a
repeated call of the same caller, method and key gets the first answer and changes nothing. A caller can have at most
${limits.idempotency_keys_max.toLocaleString('en')} keys at a time.`;

/** Descriptions of parameters by name. A description in the schema itself takes precedence. */
export const parameterTexts: Readonly<Record<string, string>> = {
  action: 'What the bot is doing',
  allow_sending_without_reply: 'If the replied message does not exist, sends the message without a reply',
  before: 'Only messages older than this message id',
  bot_id: 'Id of a bot of the caller',
  cache_time: 'Accepted and ignored',
  callback_query_id: 'Id of the callback query',
  can_change_info: 'The administrator may change title, description and photo',
  can_delete_messages: 'The administrator may delete messages of others',
  can_edit_messages: 'The administrator may edit posts of others in a channel',
  can_invite_users: 'The administrator may add people',
  can_manage_chat: 'Makes the member an administrator, even without any other right',
  can_pin_messages: 'The administrator may pin messages',
  can_post_messages: 'The administrator may post in a channel',
  can_promote_members: 'The administrator may promote others with rights of their own',
  can_restrict_members: 'The administrator may remove, ban and restrict members',
  is_anonymous: 'Must be false or absent: administrators are never anonymous',
  use_independent_chat_permissions:
    'If true, each permission is set separately. Otherwise some permissions include others',
  caption: `Caption of up to ${limits.caption_length_max} characters, counted after entities are parsed`,
  commands: `The commands, up to ${limits.commands_max}`,
  emoji: 'One emoji; U+FE0F is ignored',
  external_id: 'The external id of a post, which looks like a UUID',
  post: 'Id or external id of a post',
  post_id: 'Id of a post. `external_id` can be given instead',
  cursor: '`next_cursor` of the previous page',
  data: '`callback_data` of the button',
  description: `Up to ${limits.bot_description_length_max} characters. An empty text removes the description`,
  disable_notification: 'Sends the message without a notification',
  drop_pending_updates: 'Drops all pending updates',
  enabled: 'Whether the bot answers inline queries',
  first_name: `First name, up to ${limits.person_name_length_max} characters`,
  from_chat_id: 'Id of the chat of the original message',
  id: 'Id of a person',
  inline_query_id: 'Id of the inline query',
  language_code: 'Two-letter language code. If absent, the call concerns the default texts',
  last_name: `Last name, up to ${limits.person_name_length_max} characters`,
  limit: 'Maximum number; clamped to the allowed range',
  member_id: 'Id of a person or a bot',
  name: `Name, up to ${limits.bot_name_length_max} characters`,
  offset:
    'Confirms all updates with lower ids. A negative number -N confirms all but the last N updates. 0 confirms nothing',
  payload: 'Text that the bot gets after /start',
  protect_content: 'The message cannot be forwarded or copied',
  query: `Text after the username of the bot, up to ${limits.inline_query_length_max} characters`,
  remove_caption: 'Copies media without their captions',
  reply_to_message_id: 'Id of the message to reply to, in the same chat',
  result_id: 'Id of a result of the answer',
  rights: 'Rights of an administrator, each true or false',
  scope: 'Users who see the commands. Everyone if absent',
  short_description: `Up to ${limits.bot_short_description_length_max} characters. An empty text removes the short description`,
  show_alert: 'Shows the text as an alert',
  status: 'New status of the member',
  timeout: `How long to wait for an update, 0 to ${limits.poll_timeout_s_max} seconds; clamped`,
  title: `Title, up to ${limits.chat_title_length_max} characters`,
  type: 'Kind of chat',
  url: 'A URL',
  username: `${limits.username_length_min} to ${limits.username_length_max} letters, digits and underscores`,
};
