/** Texts of the OpenAPI document: the introduction, and parameters that mean the same in every call. */
import { limits } from '../limits.js';

export const introduction = `Petrel is a self-hosted messaging service for bots.

**Bots** call \`/bot<token>/<method>\` by GET or POST, with parameters in the query, as JSON, url-encoded or multipart.
Method names ignore case. In a query or a form, nested values may be JSON text, integers numeric text, booleans
\`true\`, \`false\`, \`1\` or \`0\`. Unknown parameters are ignored.

**People** and **operators** call \`/api/…\` with \`Authorization: Bearer <token>\`.

Every answer is \`{ok: true, result}\` or \`{ok: false, error_code, description}\`, and the HTTP status equals
\`error_code\`; 429 and 503 give in \`parameters.retry_after\` the seconds to wait before a retry.`;

export const idempotencyText = `A text of the caller's choice, up to ${limits.idempotency_key_length_max} characters. For 24 hours the same caller,
method and key is answered with the first answer, and nothing is done again. At most
${limits.idempotency_keys_max.toLocaleString('en')} keys of a caller live at a time.`;

/** By parameter name. A description in the schema itself wins. */
export const parameterTexts: Readonly<Record<string, string>> = {
  action: 'What the bot is doing',
  allow_sending_without_reply: 'Send the message without a reply if the replied message is gone',
  before: 'Only messages older than this message id',
  bot_id: 'Id of a bot of the caller',
  cache_time: 'Accepted and ignored; seconds',
  callback_query_id: 'Id of the callback query',
  caption: `Caption, up to ${limits.caption_length_max} characters after entities are parsed`,
  commands: `The commands, up to ${limits.commands_max}`,
  emoji: 'One emoji; U+FE0F is ignored',
  external_id: 'The UUID-like name of a post',
  post: 'Id or external id of a post',
  post_id: 'Id of a post; or use `external_id`',
  cursor: '`next_cursor` of the previous page',
  data: '`callback_data` of the button',
  description: `Up to ${limits.bot_description_length_max} characters; an empty text removes it`,
  disable_notification: 'Send without a notification',
  drop_pending_updates: 'Drop all pending updates',
  first_name: `First name, up to ${limits.person_name_length_max} characters`,
  from_chat_id: 'Id of the chat of the original message',
  id: 'Id of a person',
  language_code: 'Two-letter language code; the default texts if absent',
  last_name: `Last name, up to ${limits.person_name_length_max} characters`,
  limit: 'Maximum number; clamped to the allowed range',
  member_id: 'Id of a person or a bot',
  name: `Name, up to ${limits.bot_name_length_max} characters`,
  offset: 'Confirms all updates with lower ids. A negative -N keeps the last N; 0 confirms nothing',
  payload: 'Passed to the bot after /start',
  protect_content: 'The message cannot be forwarded or copied',
  remove_caption: 'Copy media without their captions',
  reply_to_message_id: 'Id of the message to reply to, in the same chat',
  rights: 'Rights of an administrator, each true or false',
  scope: 'Users who see the commands; everyone if absent',
  short_description: `Up to ${limits.bot_short_description_length_max} characters; an empty text removes it`,
  show_alert: 'Show the text as an alert',
  status: 'New status of the member',
  timeout: `How long to wait for an update, 0 to ${limits.poll_timeout_s_max} seconds; clamped`,
  title: `Title, up to ${limits.chat_title_length_max} characters`,
  type: 'Kind of chat',
  url: 'A URL',
  username: `${limits.username_length_min} to ${limits.username_length_max} letters, digits and underscores`,
};
