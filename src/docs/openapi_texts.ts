/** What the OpenAPI document says in words: of the whole, and of parameters that mean the same wherever they stand. */
import { limits } from '../limits.js';

export const introduction = `Petrel is a self-hosted messaging service for bots.

**Bots** call \`/bot<token>/<method>\` by GET or POST, with parameters in the query, as JSON, url-encoded or multipart.
Method names ignore case. In a query or a form, nested values may be JSON text, integers numeric text, booleans
\`true\`, \`false\`, \`1\` or \`0\`. Unknown parameters are ignored.

**People** and **operators** call \`/api/…\` with \`Authorization: Bearer <token>\`.

Every answer is \`{ok: true, result}\` or \`{ok: false, error_code, description}\`, and the HTTP status equals
\`error_code\`; 429 and 503 say in \`parameters.retry_after\`, in seconds, when to come back.`;

export const idempotencyText = `A text of the caller's choice, up to ${limits.idempotency_key_length_max} characters. For 24 hours the same caller,
method and key is answered with the first answer, and nothing is done again. At most
${limits.idempotency_keys_max.toLocaleString('en')} keys of a caller live at a time.`;

/** By name; a description on a schema itself goes before. */
export const parameterTexts: Readonly<Record<string, string>> = {
  action: 'What the bot is at',
  allow_sending_without_reply: 'Send without the reply if its target is gone',
  before: 'A message id: only older messages',
  bot_id: 'Id of a bot of the caller',
  cache_time: 'Taken and not used, in seconds',
  callback_query_id: 'Id of the callback query',
  caption: `Caption, up to ${limits.caption_length_max} characters after entities are parsed`,
  commands: `The commands, up to ${limits.commands_max}`,
  emoji: 'One emoji; U+FE0F is ignored',
  external_id: 'The UUID-like name of a post',
  post: 'Id or external id of a post',
  post_id: 'Id of a post; `external_id` names it as well',
  cursor: '`next_cursor` of the page before',
  data: '`callback_data` of the button',
  description: `Up to ${limits.bot_description_length_max} characters; empty removes`,
  disable_notification: 'Send without a notification',
  drop_pending_updates: 'Forget the updates that wait',
  first_name: `First name, up to ${limits.person_name_length_max} characters`,
  from_chat_id: 'The chat of the original',
  id: 'Id of a person',
  language_code: 'Two letters; without it, the default',
  last_name: `Last name, up to ${limits.person_name_length_max} characters`,
  limit: 'How many at most; what is out of bounds is clamped',
  member_id: 'Id of a person or a bot',
  name: `Name, up to ${limits.bot_name_length_max} characters`,
  offset: 'Confirms all updates below it; -N keeps the last N; 0 confirms nothing',
  payload: 'Comes to the bot behind /start',
  protect_content: 'The message cannot be forwarded or copied',
  remove_caption: 'Leave the captions of media out',
  reply_to_message_id: 'Id of the message that this one answers, in the same chat',
  rights: 'Of an administrator, each true or false',
  scope: 'Whom the commands are for; without it, all',
  short_description: `Up to ${limits.bot_short_description_length_max} characters; empty removes`,
  show_alert: 'Show the text as an alert',
  status: 'What the member is to be',
  timeout: `How long to wait for an update, 0 to ${limits.poll_timeout_s_max} seconds; clamped`,
  title: `Title, up to ${limits.chat_title_length_max} characters`,
  type: 'Kind of chat',
  url: 'A URL',
  username: `${limits.username_length_min} to ${limits.username_length_max} letters, digits and underscores`,
};
