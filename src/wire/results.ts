/**
 * Defines the objects of the wire format, as the OpenAPI document shows them. The schemas are strict, so that a test
 * finds undocumented fields in real answers. A schema with an `id` becomes an OpenAPI component of that name.
 */
import { z } from 'zod';
import { photoSize } from '../content/file_fields.js';
import { contentFields } from '../content/kinds.js';
import { shareKinds } from '../rules/keyboard.js';
import { permissionNames } from '../rules/permissions.js';
import { otherFlags, rightNames } from '../rules/rights.js';
import { buttonStyles } from './schema.js';

export const unixSeconds = z.int().min(0).describe('Unix time in seconds');
const utf16 = z.int().min(0).describe('UTF-16 code units');

const sizeShape = {
  url: z.string().describe('Path below the base URL of the service. A new picture gets a new path'),
  width: z.int().positive().describe('pixels'),
  height: z.int().positive().describe('pixels'),
  file_size: z.int().positive().describe('bytes'),
};

export const picture = z
  .strictObject({
    ...sizeShape,
    small: z.strictObject(sizeShape).optional().describe('Smaller version of the picture. Only for avatars'),
  })
  .meta({ id: 'Picture', description: 'A picture of a bot or person, as WebP.' });

export const pictureFields = { avatar: picture.optional(), start_picture: picture.optional() };

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
        'Negative for groups, channels and chats of two people. For a direct chat with a bot, the positive id of the other participant',
      ),
    type: z
      .enum(['private', 'group', 'channel', 'person'])
      .describe('`person` is a chat of two people, which bots never see'),
    title: z.string().optional().describe('Groups and channels only'),
    first_name: z
      .string()
      .optional()
      .describe('Name of the other participant of a direct chat. Empty for a deleted account'),
    last_name: z.string().optional(),
    username: z.string().optional(),
    user_id: z.int().positive().optional().describe('The other person. Only for type `person`'),
  })
  .meta({ id: 'Chat', description: 'The chat that a message belongs to.' });

export const messageEntity = z
  .strictObject({
    type: z
      .string()
      .describe('bold, italic, code, pre, text_link, bot_command, mention, hashtag, url, email, …'),
    offset: utf16,
    length: utf16,
    url: z.string().optional().describe('Only for `text_link`'),
    user: user.optional().describe('Only for `text_mention`'),
    language: z.string().optional().describe('Only for `pre`'),
    custom_emoji_id: z.string().optional(),
  })
  .meta({ id: 'MessageEntity', description: 'A formatted range of a text.' });

const on = z.literal(true).optional();

export const linkPreviewOptions = z
  .strictObject({
    is_disabled: on,
    url: z.string().optional().describe('Page to show instead of the first link'),
    prefer_small_media: on,
    prefer_large_media: on,
    show_above_text: on,
  })
  .meta({
    id: 'LinkPreviewOptions',
    description: 'Options of a message’s link preview. An option that is not set is absent.',
  });

export const shownLinkPreview = z
  .strictObject({
    preview: z
      .strictObject({
        url: z.string().describe('The link, as a URL with `https:` and without a fragment'),
        host: z.string().describe('Host of the page, after redirects'),
        title: z.string(),
        description: z.string().optional(),
        site_name: z.string().optional().describe('Name that the page gives to its site'),
      })
      .meta({
        id: 'LinkPreview',
        description:
          'The title and description of a page. They come from the page itself, so they may be false.',
      })
      .optional()
      .describe('Absent if the message shows no preview, or if the page has no title'),
  })
  .meta({ id: 'ShownLinkPreview', description: 'The preview of a link in a message.' });

export const inlineKeyboard = z
  .strictObject({
    inline_keyboard: z.array(
      z.array(
        z.strictObject({
          text: z.string(),
          callback_data: z.string().optional(),
          url: z.string().optional(),
          login_url: z.strictObject({ url: z.string() }).optional(),
          web_app: z.strictObject({ url: z.string() }).optional(),
          copy_text: z.strictObject({ text: z.string() }).optional(),
          switch_inline_query: z.string().optional(),
          switch_inline_query_current_chat: z.string().optional(),
          switch_inline_query_chosen_chat: z.strictObject({ query: z.string() }).optional(),
          style: z.enum(buttonStyles).optional(),
        }),
      ),
    ),
  })
  .meta({ id: 'InlineKeyboard', description: 'Rows of buttons under a message.' });

export const replyKeyboard = z
  .strictObject({
    keyboard: z
      .array(
        z.array(
          z.strictObject({
            text: z.string(),
            request: z.enum(shareKinds).optional().describe('What a press shares instead of the text'),
          }),
        ),
      )
      .optional(),
    remove_keyboard: z.literal(true).optional(),
    force_reply: z.literal(true).optional(),
    is_persistent: z.literal(true).optional(),
    resize_keyboard: z.literal(true).optional(),
    one_time_keyboard: z.literal(true).optional(),
    input_field_placeholder: z.string().optional(),
    selective: z
      .literal(true)
      .optional()
      .describe('Only for people mentioned in the message, and for the author of the message it replies to'),
  })
  .meta({
    id: 'ReplyKeyboard',
    description: 'A keyboard below the message input, a command to remove it, or a request for a reply.',
  });

export const signedLink = z
  .strictObject({
    url: z
      .string()
      .describe('Address of the page. Open it at once, because `auth_date` is the time of this call'),
  })
  .meta({
    id: 'SignedLink',
    description: 'The URL of a page. The URL contains signed data about the caller.',
  });

export const forwardOrigin = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('user'), sender_user: user, date: unixSeconds }),
    z.strictObject({ type: z.literal('channel'), chat, message_id: z.int(), date: unixSeconds }),
  ])
  .meta({ id: 'ForwardOrigin', description: 'The original sender or channel of a forwarded message.' });

const serviceFields = {
  group_chat_created: z.literal(true).optional().describe('The group was created'),
  new_chat_members: z.array(user).min(1).optional().describe('People and bots who joined or were added'),
  left_chat_member: user.optional().describe('Person or bot who left or was removed'),
  new_chat_title: z.string().optional().describe('The title was changed'),
  new_chat_photo: contentFields.photo.describe('The photo was changed'),
  delete_chat_photo: z.literal(true).optional().describe('The photo was removed'),
};
export const serviceNames = Object.keys(serviceFields);

const messageFields = {
  message_id: z.int().positive().describe('Id of the message, unique in its chat'),
  from: user.optional(),
  sender_chat: chat.optional().describe('The channel of a channel post'),
  chat,
  date: unixSeconds,
  edit_date: unixSeconds.optional(),
  edit_pending: z
    .literal(true)
    .optional()
    .describe('Only in answers to coalesced edits: the edit is accepted, but not applied yet'),
  via_bot: user.optional().describe('The bot whose inline result a person sent'),
  has_protected_content: z.literal(true).optional().describe('The message cannot be forwarded or copied'),
  text: z.string().optional(),
  entities: z.array(messageEntity).optional(),
  ...contentFields,
  link_preview_options: linkPreviewOptions.optional(),
  has_media_spoiler: z.literal(true).optional(),
  show_caption_above_media: z.literal(true).optional(),
  media_group_id: z.string().optional().describe('Id of the album'),
  caption: z.string().optional(),
  caption_entities: z.array(messageEntity).optional(),
  reply_markup: inlineKeyboard.optional(),
  reply_keyboard: replyKeyboard.optional().describe('Only for people; bots do not see it'),
  forward_origin: forwardOrigin.optional(),
  forward_from: user.optional(),
  forward_from_chat: chat.optional(),
  forward_from_message_id: z.int().positive().optional(),
  forward_date: unixSeconds.optional(),
  ...serviceFields,
  get reply_to_message() {
    return message
      .optional()
      .describe('The message to which this message replies, without its own `reply_to_message`');
  },
  get pinned_message() {
    return z
      .union([message, messageReference])
      .optional()
      .describe('The message that was pinned; only in the service message about the pin');
  },
};

export const message: z.ZodType = z
  .strictObject(messageFields)
  .meta({ id: 'Message', description: 'A message (interface §2).' });

/** The result of the methods that edit a message. */
export const editedMessage = z
  .union([message, done])
  .describe('The edited message; `true` for a message named by `inline_message_id`');

export const fileInfo = z
  .strictObject({
    file_id: z.string(),
    file_unique_id: z.string(),
    file_size: z.int().min(0).optional().describe('bytes'),
    file_path: z
      .string()
      .optional()
      .describe('Path below `/file/bot<token>/`. Absent if the media is stored as a URL'),
  })
  .meta({ id: 'File', description: 'A file and its download path.' });

export const messageList = z.array(message);

export const messageReference = z
  .strictObject({ message_id: z.int().positive() })
  .meta({ id: 'MessageReference', description: 'The id of a message.' });

export const messageEvent = z
  .strictObject({
    ...messageFields,
    notify: z.boolean().describe('False if the message was sent without a notification'),
  })
  .meta({ id: 'MessageEvent', description: 'A new message.' });

export const messageReferences = z.array(messageReference);

export const callbackQuery = z
  .strictObject({
    id: z.string(),
    from: user,
    message: message.optional().describe('Absent if a person sent the message by way of the bot'),
    inline_message_id: z.string().optional().describe('Id of a message that a person sent by way of the bot'),
    chat_instance: z.string().describe('Id that is constant for a chat'),
    data: z.string(),
  })
  .meta({ id: 'CallbackQuery', description: 'A press of an inline button by a person.' });

const flag = z.boolean();

/** A chat member. Contains flags for rights that do not exist in Petrel, because libraries expect these flags. */
export const botChatMember = z
  .strictObject({
    user,
    status: z.enum(['creator', 'administrator', 'member', 'restricted', 'left', 'kicked']),
    is_anonymous: flag.optional(),
    is_member: flag.optional().describe('Only for restricted members'),
    custom_title: z.string().optional().describe('Title of an administrator'),
    until_date: z.int().optional().describe('End of the ban or restriction as Unix time; 0 if it never ends'),
    ...Object.fromEntries(
      [...rightNames, ...otherFlags, ...permissionNames].map((name) => [name, flag.optional()]),
    ),
  })
  .meta({ id: 'BotChatMember', description: 'A user’s role and rights in a chat.' });

export const botChatMembers = z.array(botChatMember);
export const memberCount = z.int().min(0);

const inviteLinkFields = {
  invite_link: z.string().describe('The link. Links of others are shortened, with `…` at the end'),
  creator: user,
  creates_join_request: flag.describe('Administrators decide on each person'),
  is_primary: flag,
  is_revoked: flag,
  name: z.string().optional(),
  expire_date: unixSeconds.optional().describe('Absent if the link does not expire'),
  member_limit: z
    .int()
    .min(1)
    .optional()
    .describe('Maximum number of current members who joined by this link'),
  pending_join_request_count: z.int().min(1).optional(),
};

export const inviteLink = z
  .strictObject(inviteLinkFields)
  .meta({ id: 'ChatInviteLink', description: 'A link by which people join a group or channel.' });

export const inviteUrl = z.string().describe('An invite link');

export const memberUpdated = z
  .strictObject({
    chat,
    from: user,
    date: unixSeconds,
    old_chat_member: botChatMember,
    new_chat_member: botChatMember,
    invite_link: inviteLink.optional().describe('The link by which the person joined'),
  })
  .meta({ id: 'ChatMemberUpdated', description: "A change of a user's role in a chat." });

export const joinRequest = z
  .strictObject({
    chat,
    from: user,
    user_chat_id: z.int().positive().describe('Id of the direct chat with the person, which may not be open'),
    date: unixSeconds,
    invite_link: inviteLink.optional(),
  })
  .meta({ id: 'ChatJoinRequest', description: 'A request to join a group or channel.' });

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
  .meta({
    id: 'MessageReactionCountUpdated',
    description: 'How many reactions with each emoji a post has now.',
  });

const pollAnswer = z
  .strictObject({
    poll_id: z.string(),
    user,
    option_ids: z.array(z.int().min(0)).describe('Empty when the vote was retracted'),
    option_persistent_ids: z.array(z.string()),
  })
  .meta({ id: 'PollAnswer', description: 'A person’s vote in a poll that is not anonymous.' });

const inlineQuery = z
  .strictObject({
    id: z.string(),
    from: user,
    query: z.string(),
    offset: z.string(),
    chat_type: z
      .enum(['sender', 'private', 'group', 'channel'])
      .describe('Type of the chat. `sender` is the direct chat of the person with the bot'),
  })
  .meta({ id: 'InlineQuery', description: 'A query that a person typed after the bot’s username.' });

const chosenInlineResult = z
  .strictObject({
    result_id: z.string(),
    from: user,
    query: z.string(),
    inline_message_id: z.string().optional().describe('Only for a message with an inline keyboard'),
  })
  .meta({ id: 'ChosenInlineResult', description: 'An inline result that a person sent to a chat.' });

const generationStopped = z.strictObject({ chat, draft_id: z.int() }).meta({
  id: 'MessageGenerationStopped',
  description: 'A person told the bot to stop writing a message.',
});

const draftFields = {
  draft_id: z.int().describe('Chosen by the bot'),
  after_message_id: z
    .int()
    .min(0)
    .describe('Id of the last message before the draft. A newer message of the bot replaces the draft'),
  can_stop: z.boolean(),
  stopped: z.boolean(),
  text: z.string().describe('Empty while the bot has written nothing, and after a stop'),
  entities: z.array(messageEntity).optional(),
};

export const shownDraft = z
  .strictObject(draftFields)
  .meta({ id: 'MessageDraft', description: 'The message that a bot is writing in a direct chat.' });

export const draftEvent = z
  .strictObject({ chat_id: z.int(), from_id: z.int().positive().describe('Id of the bot'), ...draftFields })
  .meta({
    id: 'MessageDraftEvent',
    description: 'A bot has changed the text of a message that it is still writing.',
  });

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
    chat_join_request: joinRequest.optional(),
    poll: contentFields.poll.describe('A poll of the bot has changed'),
    poll_answer: pollAnswer.optional(),
    inline_query: inlineQuery.optional(),
    chosen_inline_result: chosenInlineResult
      .optional()
      .describe('Only for bots whose owner turned on inline feedback'),
    stopped_message_generation: generationStopped.optional(),
  })
  .meta({ id: 'Update', description: 'An update. Exactly one of the optional fields is present.' });

export const updateList = z.array(update);

export const retryPolicyResult = z
  .strictObject({
    first_delay: z.int().min(1).describe('Seconds before the first retry'),
    factor: z.number().min(1).describe('Factor of each later delay'),
    max_age: z.int().min(60).describe('Seconds after which an update becomes a dead letter'),
  })
  .meta({ id: 'RetryPolicy', description: 'How failed deliveries are retried.' });

export const webhookInfo = z
  .strictObject({
    url: z.string().describe('Empty while the bot polls'),
    has_custom_certificate: z.boolean(),
    pending_update_count: z.int().min(0),
    last_error_date: unixSeconds.nullable(),
    last_error_message: z.string().nullable(),
    max_connections: z.int().min(1).max(100),
    retry_policy: retryPolicyResult.optional(),
    ip_address: z.string().optional(),
    last_synchronization_error_date: unixSeconds.optional(),
    allowed_updates: z.array(z.string()).optional(),
  })
  .meta({ id: 'WebhookInfo', description: 'The settings and the state of a bot’s webhook.' });

export const webhookRoute = z
  .strictObject({
    name: z.string(),
    url: z.string(),
    has_custom_certificate: z.boolean(),
    pending_update_count: z.int().min(0),
    dead_letter_count: z.int().min(0).describe('How many updates of the route became dead letters so far'),
    last_error_date: unixSeconds.nullable(),
    last_error_message: z.string().nullable(),
    next_try_date: unixSeconds.nullable().describe('Time of the next retry. Null if no update waits for one'),
    max_connections: z.int().min(1).max(100),
    retry_policy: retryPolicyResult.optional(),
    ip_address: z.string().optional(),
    allowed_updates: z.array(z.string()).optional(),
    chat_ids: z.array(z.int()).optional().describe('The chats whose updates the route takes'),
    percent: z.int().min(1).max(99).optional().describe('The percentage of chats that the route takes'),
    commands: z.array(z.string()).optional().describe('The commands that the route takes'),
  })
  .meta({ id: 'WebhookRoute', description: 'The settings and the state of a webhook route.' });

const chatPermissions = z
  .strictObject({
    ...Object.fromEntries(permissionNames.map((name) => [name, z.boolean()])),
    can_edit_messages: z.boolean(),
    can_delete_messages: z.boolean(),
  })
  .meta({ id: 'ChatPermissions', description: 'The default rights of a group’s members.' });

const chatPhoto = z
  .strictObject({
    small_file_id: z.string(),
    small_file_unique_id: z.string(),
    big_file_id: z.string(),
    big_file_unique_id: z.string(),
  })
  .meta({ id: 'ChatPhoto', description: 'The photo of a chat, in two sizes.' });

export const chatInfo = chat
  .extend({
    description: z.string().optional(),
    photo: chatPhoto.optional(),
    pinned_message: message.optional(),
    invite_link: z.string().optional().describe('Primary link of the bot'),
    permissions: chatPermissions.optional(),
    member_count: z.int().min(0).optional(),
    accent_color_id: z.int().min(0).max(6).describe('Id of the name colour'),
    max_reaction_count: z
      .int()
      .min(0)
      .describe('Maximum number of different emoji of one person on one post'),
    accepted_gift_types: z.record(z.string(), z.literal(false)).describe('No type of gift is accepted'),
  })
  .meta({ id: 'ChatInfo', description: 'A chat with all fields that a bot can see.' });

export const chatMember = z
  .strictObject({
    user: user.nullable(),
    avatar: pictureFields.avatar.describe('Only for people'),
    status: z
      .enum(['creator', 'administrator', 'member', 'restricted', 'left', 'kicked', 'invited'])
      .describe('`invited` when the caller could only invite the person'),
    rights: z
      .record(z.string(), z.boolean())
      .describe('Rights of an administrator. The creator has all rights'),
  })
  .meta({ id: 'ChatMember', description: 'A member of a chat and their rights.' });

export const pageOf = <T extends z.ZodType>(item: T) =>
  z.strictObject({
    items: z.array(item),
    next_cursor: z.string().optional().describe('Absent on the last page'),
  });

export const messagePage = pageOf(message).extend({
  authors: z
    .array(
      z.strictObject({ user, avatar: pictureFields.avatar }).meta({
        id: 'Author',
        description: 'The current name and avatar of a person who wrote messages in the list.',
      }),
    )
    .optional()
    .describe(
      'The people who wrote messages of this page of a group and are still in it. `from` of a message has the name at the time of the message',
    ),
});

export const botCommandList = z.array(
  z
    .strictObject({ command: z.string(), description: z.string() })
    .meta({ id: 'BotCommand', description: 'A command in a bot’s command menu.' }),
);

export const ownedBot = z
  .strictObject({ id: z.int().positive(), is_bot: z.literal(true), username: z.string(), name: z.string() })
  .meta({ id: 'OwnedBot', description: 'A bot as its owner sees it.' });

export const ownedBotPage = pageOf(ownedBot);

export const menuButton = z
  .strictObject({
    type: z.enum(['default', 'commands', 'web_app']),
    text: z.string().optional().describe('Only for `web_app`'),
    web_app: z.strictObject({ url: z.string() }).optional().describe('Only for `web_app`'),
  })
  .meta({ id: 'MenuButton', description: 'The menu button of a bot.' });

export const botPage = z
  .strictObject({
    id: z.int().positive(),
    username: z.string(),
    name: z.string(),
    description: z.string(),
    short_description: z.string(),
    ...pictureFields,
    commands: botCommandList.optional(),
    menu_button: menuButton
      .optional()
      .describe('The Web App that the caller is offered; absent when the bot offers its commands'),
    administrator_rights: z
      .strictObject({ group: z.array(z.string()).optional(), channel: z.array(z.string()).optional() })
      .optional()
      .describe('Names of the rights that the bot asks for as administrator, by type of chat'),
    can_write: z.boolean().describe('Whether the caller may write to the bot'),
  })
  .meta({ id: 'BotPage', description: 'The profile of a bot, which people see before they start the bot.' });

const booleans = <N extends string>(names: readonly N[]) =>
  Object.fromEntries(names.map((name) => [name, z.boolean()])) as { [K in N]: z.ZodBoolean };

export const administratorRights = z
  .strictObject({
    is_anonymous: z.boolean(),
    ...booleans(otherFlags.filter((name) => name !== 'can_be_edited')),
    ...booleans(rightNames),
    can_post_messages: z.boolean().optional().describe('Only for channels'),
    can_pin_messages: z.boolean().optional().describe('Only for groups'),
  })
  .meta({ id: 'ChatAdministratorRights', description: 'An administrator’s rights.' });

export const userProfilePhotos = z
  .strictObject({ total_count: z.int().min(0), photos: z.array(z.array(photoSize)) })
  .meta({ id: 'UserProfilePhotos', description: 'The profile pictures of a person or a bot.' });

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
  description: 'The id of a button press. The event stream later contains the bot’s answer with this id.',
});
