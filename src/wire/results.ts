/**
 * Objects of the wire format, as the OpenAPI document shows them. The schemas are strict, so that a test on real
 * answers finds undocumented fields. A schema with an `id` becomes a component of that name.
 */
import { z } from 'zod';
import { contentFields } from '../content/kinds.js';
import { otherFlags, rightNames } from '../rules/rights.js';

export const unixSeconds = z.int().min(0).describe('Unix time in seconds');
const utf16 = z.int().min(0).describe('UTF-16 code units');

const sizeShape = {
  url: z.string().describe('Path below the base URL of the service. Changes with the picture'),
  width: z.int().positive().describe('pixels'),
  height: z.int().positive().describe('pixels'),
  file_size: z.int().positive().describe('bytes'),
};

export const picture = z
  .strictObject({
    ...sizeShape,
    small: z.strictObject(sizeShape).optional().describe('A smaller version. Avatars only'),
  })
  .meta({ id: 'Picture', description: 'A picture of a bot, as WebP.' });

/** Picture fields shared by `BotPage` and `OwnedBot`. */
export const pictureFields = { avatar: picture.optional(), start_picture: picture.optional() };

/** Result of methods that only report success. */
export const done = z.literal(true);

export const user = z
  .strictObject({
    id: z.int().positive(),
    is_bot: z.boolean(),
    first_name: z.string(),
    last_name: z.string().optional(),
    username: z.string().optional(),
    language_code: z.string().optional(),
    external_id: z.string().optional().describe('A UUID. Only for people, and only in the application API'),
  })
  .meta({ id: 'User', description: 'A person or a bot.' });

export const botIdentity = z
  .strictObject({
    id: z.int().positive(),
    is_bot: z.literal(true),
    first_name: z.string(),
    username: z.string(),
    can_join_groups: z.boolean(),
    can_read_all_group_messages: z.boolean(),
    supports_inline_queries: z.boolean(),
  })
  .meta({ id: 'BotIdentity', description: 'The identity of a bot.' });

export const chat = z
  .strictObject({
    id: z
      .int()
      .describe(
        'Positive for a direct chat (the id of the other participant), negative for groups and channels',
      ),
    type: z.enum(['private', 'group', 'channel']),
    title: z.string().optional().describe('Groups and channels only'),
    first_name: z.string().optional().describe('Name of the other participant of a direct chat'),
    last_name: z.string().optional(),
    username: z.string().optional(),
  })
  .meta({ id: 'Chat', description: 'The chat of a message.' });

export const messageEntity = z
  .strictObject({
    type: z
      .string()
      .describe('bold, italic, code, pre, text_link, bot_command, mention, hashtag, url, email, …'),
    offset: utf16,
    length: utf16,
    url: z.string().optional().describe('Of text_link'),
    user: user.optional().describe('Of text_mention'),
    language: z.string().optional().describe('Of pre'),
    custom_emoji_id: z.string().optional(),
  })
  .meta({ id: 'MessageEntity', description: 'A formatted range of a text.' });

export const inlineKeyboard = z
  .strictObject({
    inline_keyboard: z.array(
      z.array(
        z.looseObject({ text: z.string(), callback_data: z.string().optional(), url: z.string().optional() }),
      ),
    ),
  })
  .meta({ id: 'InlineKeyboard', description: 'Rows of buttons under a message.' });

export const forwardOrigin = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('user'), sender_user: user, date: unixSeconds }),
    z.strictObject({ type: z.literal('channel'), chat, message_id: z.int(), date: unixSeconds }),
  ])
  .meta({ id: 'ForwardOrigin', description: 'Where a forwarded message was first sent.' });

const messageFields = {
  message_id: z.int().positive().describe('Unique in its chat'),
  from: user.optional(),
  sender_chat: chat.optional().describe('The channel of a channel post'),
  chat,
  date: unixSeconds,
  edit_date: unixSeconds.optional(),
  has_protected_content: z.literal(true).optional().describe('The message cannot be forwarded or copied'),
  text: z.string().optional(),
  entities: z.array(messageEntity).optional(),
  ...contentFields,
  has_media_spoiler: z.literal(true).optional(),
  media_group_id: z.string().optional().describe('Id of the album'),
  caption: z.string().optional(),
  caption_entities: z.array(messageEntity).optional(),
  reply_markup: inlineKeyboard.optional(),
  forward_origin: forwardOrigin.optional(),
  forward_from: user.optional(),
  forward_from_chat: chat.optional(),
  forward_from_message_id: z.int().positive().optional(),
  forward_date: unixSeconds.optional(),
  get reply_to_message() {
    return message.optional().describe('The message replied to, without its own `reply_to_message`');
  },
  get pinned_message() {
    return z
      .union([message, messageReference])
      .optional()
      .describe('The pinned message, in the service message about it');
  },
};

export const message: z.ZodType = z
  .strictObject(messageFields)
  .meta({ id: 'Message', description: 'A message (interface §2).' });

export const fileInfo = z
  .strictObject({
    file_id: z.string(),
    file_unique_id: z.string(),
    file_size: z.int().min(0).optional().describe('bytes'),
    file_path: z
      .string()
      .optional()
      .describe('Path below `/file/bot<token>/`; absent for media stored as a URL'),
  })
  .meta({ id: 'File', description: 'A file and its download path.' });

export const messageList = z.array(message);

/** Result of copying one message, or of forwarding or copying several. */
export const messageReference = z
  .strictObject({ message_id: z.int().positive() })
  .meta({ id: 'MessageReference', description: 'The id of a new message.' });

export const messageReferences = z.array(messageReference);

export const callbackQuery = z
  .strictObject({
    id: z.string(),
    from: user,
    message,
    chat_instance: z.string().describe('Constant for a chat'),
    data: z.string(),
  })
  .meta({ id: 'CallbackQuery', description: 'A press of an inline button.' });

const flag = z.boolean();

/** Includes rights of administrators. Libraries expect more flags than this service has rights. */
export const botChatMember = z
  .strictObject({
    user,
    status: z.enum(['creator', 'administrator', 'member', 'left', 'kicked']),
    is_anonymous: flag.optional(),
    until_date: z.int().optional().describe('When a ban ends; 0 for never. Only for removed members'),
    ...Object.fromEntries([...rightNames, ...otherFlags].map((name) => [name, flag.optional()])),
  })
  .meta({ id: 'BotChatMember', description: 'Role and rights of a user in a chat.' });

export const botChatMembers = z.array(botChatMember);
export const memberCount = z.int().min(0);

export const memberUpdated = z
  .strictObject({
    ...{ chat, from: user, date: unixSeconds },
    ...{ old_chat_member: botChatMember, new_chat_member: botChatMember },
  })
  .meta({ id: 'ChatMemberUpdated', description: "A change of a user's role in a chat." });

export const reactionCountUpdated = z
  .strictObject({
    chat,
    message_id: z.int().positive(),
    date: unixSeconds,
    reactions: z.array(
      z.strictObject({
        type: z.strictObject({ type: z.literal('emoji'), emoji: z.string() }),
        total_count: z.int().min(1),
      }),
    ),
  })
  .meta({ id: 'MessageReactionCountUpdated', description: 'Current number of each emoji on a post.' });

export const update = z
  .strictObject({
    update_id: z.int().positive().describe('Unique per bot and increasing'),
    message: message.optional(),
    edited_message: message.optional(),
    channel_post: message.optional(),
    edited_channel_post: message.optional(),
    callback_query: callbackQuery.optional(),
    my_chat_member: memberUpdated.optional(),
    chat_member: memberUpdated.optional(),
    message_reaction_count: reactionCountUpdated.optional(),
  })
  .meta({ id: 'Update', description: 'An update. Has exactly one of its optional fields.' });

export const updateList = z.array(update);

export const webhookInfo = z
  .strictObject({
    url: z.string().describe('Empty while the bot polls'),
    has_custom_certificate: z.boolean(),
    pending_update_count: z.int().min(0),
    last_error_date: unixSeconds.nullable(),
    last_error_message: z.string().nullable(),
    max_connections: z.int().min(1).max(100),
    ip_address: z.string().optional(),
    last_synchronization_error_date: unixSeconds.optional(),
    allowed_updates: z.array(z.string()).optional(),
  })
  .meta({ id: 'WebhookInfo', description: 'How updates are delivered.' });

const chatPermissions = z
  .strictObject({
    can_send_messages: z.boolean(),
    can_pin_messages: z.boolean(),
    can_invite_users: z.boolean(),
    can_edit_messages: z.boolean(),
    can_delete_messages: z.boolean(),
  })
  .meta({ id: 'ChatPermissions', description: 'Default rights of members.' });

export const chatInfo = chat
  .extend({
    description: z.string().optional(),
    pinned_message: message.optional(),
    permissions: chatPermissions.optional(),
    member_count: z.int().min(0).optional(),
    accent_color_id: z.int().min(0).max(6).describe('Id of the name colour'),
    max_reaction_count: z
      .int()
      .min(0)
      .describe('Maximum number of different emoji of one person on one post'),
    accepted_gift_types: z.record(z.string(), z.literal(false)).describe('None'),
  })
  .meta({ id: 'ChatInfo', description: 'A chat with all fields visible to a bot.' });

export const chatMember = z
  .strictObject({
    user: user.nullable(),
    status: z
      .enum(['creator', 'administrator', 'member', 'left', 'kicked', 'invited'])
      .describe('`invited` when the caller could only invite the person'),
    rights: z
      .record(z.string(), z.boolean())
      .describe('Rights of an administrator. The creator has all rights'),
  })
  .meta({ id: 'ChatMember', description: 'A member of a chat and their rights.' });

/** A page of a list that is read with `cursor`. */
export const pageOf = <T extends z.ZodType>(item: T) =>
  z.strictObject({
    items: z.array(item),
    next_cursor: z.string().optional().describe('Absent on the last page'),
  });

export const messagePage = pageOf(message);

export const botCommandList = z.array(
  z
    .strictObject({ command: z.string(), description: z.string() })
    .meta({ id: 'BotCommand', description: 'A command in the menu of a bot.' }),
);

export const ownedBot = z
  .strictObject({ id: z.int().positive(), is_bot: z.literal(true), username: z.string(), name: z.string() })
  .meta({ id: 'OwnedBot', description: 'A bot as its owner sees it.' });

export const ownedBotPage = pageOf(ownedBot);

export const botPage = z
  .strictObject({
    id: z.int().positive(),
    username: z.string(),
    name: z.string(),
    description: z.string(),
    short_description: z.string(),
    ...pictureFields,
    commands: botCommandList.optional(),
    can_write: z.boolean().describe('Whether the caller may write to it'),
  })
  .meta({ id: 'BotPage', description: 'The page of a bot that people see before they start it.' });

export const botName = z.strictObject({ name: z.string() }).meta({ id: 'BotName' });
export const botDescription = z.strictObject({ description: z.string() }).meta({ id: 'BotDescription' });
export const botShortDescription = z
  .strictObject({ short_description: z.string() })
  .meta({ id: 'BotShortDescription' });

export const issuedToken = z
  .strictObject({ token: z.string() })
  .meta({ id: 'IssuedToken', description: 'A secret.' });

export const botWithToken = z
  .strictObject({ id: z.int().positive(), username: z.string(), token: z.string() })
  .meta({ id: 'BotWithToken', description: 'A bot and its secret token.' });

export const userWithToken = z
  .strictObject({ user, token: z.string() })
  .meta({ id: 'UserWithToken', description: 'A person and their secret token.' });

export const pressedQuery = z.strictObject({ callback_query_id: z.string() }).meta({
  id: 'PressedQuery',
  description: "Id of the button press. The bot's answer arrives on the stream.",
});
