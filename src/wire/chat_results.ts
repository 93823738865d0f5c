/** Defines the results about the caller's chats, as the OpenAPI document shows them. */
import { z } from 'zod';
import { kindNames } from '../content/kinds.js';
import { ruleLimits as limits } from '../rules/limits.js';
import {
  chat,
  inviteLink,
  pageOf,
  picture,
  pictureFields,
  serviceNames,
  unixSeconds,
  user,
} from './results.js';

const preview = z
  .strictObject({
    message_id: z.int().positive(),
    date: unixSeconds,
    kind: z.enum(['text', ...kindNames, ...serviceNames, 'pinned_message', 'service']),
    from: user.optional(),
    member: user.optional().describe('Person or bot who joined or left, in a service message'),
    text: z
      .string()
      .optional()
      .describe(`The first ${limits.preview_text_length_max} characters of the text or the caption`),
    file_name: z.string().optional().describe('Name of the file, title of the venue or name of the contact'),
  })
  .meta({ id: 'MessagePreview', description: 'The last message of a chat, as the chat list shows it.' });

export const listedChat = chat
  .extend({
    member_count: z.int().min(0).optional(),
    avatar: pictureFields.avatar.describe(
      'Avatar of the other side of a direct chat or of a chat of two people, or photo of the chat',
    ),
    description: z
      .string()
      .optional()
      .describe('Description of a group or channel. Only in answers about a single chat'),
    last_message: preview.optional(),
    joined_at: unixSeconds
      .optional()
      .describe('Time at which the caller joined. Only for chats without messages'),
    pinned_message: preview.optional(),
    blocked: z
      .literal(true)
      .optional()
      .describe('The caller blocked the other person of this chat. Nobody can write in it'),
    closed: z
      .literal(true)
      .optional()
      .describe('The other person of this chat blocked the caller, or deleted their account'),
    can_post: z
      .literal(true)
      .optional()
      .describe('Present if the chat is a channel in which the caller may post'),
    can_pin: z.literal(true).optional().describe('Present if the caller may pin and unpin messages'),
    can_delete: z
      .literal(true)
      .optional()
      .describe('Present if the caller may delete messages of others in this group or channel'),
    unread_count: z
      .int()
      .min(1)
      .max(limits.unread_counted_max)
      .optional()
      .describe(
        'Number of messages of others that the caller has not read, up to a limit. Absent if there are none',
      ),
    read_message_id: z
      .int()
      .min(0)
      .optional()
      .describe('The last message that the caller has read, or 0. Present with `unread_count`'),
    muted: z.literal(true).optional().describe('Notifications of this chat are off'),
    muted_until: unixSeconds.optional().describe('Absent if the chat is muted forever'),
    list_pin: z
      .int()
      .positive()
      .optional()
      .describe('Present if the caller pinned the chat in the list. The greatest number comes first'),
    archived: z.literal(true).optional().describe('The chat is in the archive of the caller'),
  })
  .meta({ id: 'ChatSummary', description: "A chat in a person's chat list." });

export const listedChats = pageOf(listedChat).extend({
  archived_count: z
    .int()
    .positive()
    .optional()
    .describe('Number of archived chats. Absent if there are none, and in the list of archived chats'),
});

export const publicChat = chat
  .extend({
    member_count: z.int().min(0),
    description: z.string().optional(),
    avatar: pictureFields.avatar,
  })
  .meta({ id: 'PublicChat', description: 'A public group or channel as everybody sees it.' });

export const namedByUsername = z
  .strictObject({
    type: z.enum(['user', 'bot', 'group', 'channel']),
    id: z.int(),
    username: z.string(),
    inline_placeholder: z.string().optional().describe('Only for bots with inline mode'),
  })
  .meta({ id: 'Named', description: 'A person, a bot or a public chat, found by its username.' });

export const suggestions = z
  .strictObject({
    items: z.array(
      z
        .strictObject({
          type: z.enum(['bot', 'group', 'channel']),
          id: z.int(),
          username: z.string(),
          title: z.string(),
          about: z.string().optional().describe('Short description of a bot, in the language of the caller'),
          avatar: picture.optional().describe('Only for bots'),
        })
        .meta({ id: 'Suggestion', description: 'A bot or public chat that the operator suggests.' }),
    ),
  })
  .meta({ id: 'Suggestions', description: 'The bots and public chats that the operator suggests.' });

export const invitationPage = pageOf(
  z
    .strictObject({
      chat,
      member_count: z.int().min(0),
      from: user.optional().describe('Person who invited the caller'),
      date: unixSeconds,
    })
    .meta({
      id: 'Invitation',
      description: 'An invitation to a group or channel that the caller has received.',
    }),
);

export const listedLink = inviteLink
  .extend({
    id: z.int().positive(),
    member_count: z.int().min(0).describe('Number of current members who joined by the link'),
  })
  .meta({ id: 'ListedInviteLink', description: 'An invite link as administrators see it.' });

export const listedLinks = pageOf(listedLink);

export const linkPreview = z
  .strictObject({
    type: z.enum(['group', 'channel']),
    title: z.string(),
    description: z.string().optional(),
    avatar: pictureFields.avatar,
    member_count: z.int().min(0),
    creates_join_request: z.boolean().describe('Administrators decide on each person'),
    requested: z.literal(true).optional().describe('The caller has asked to join'),
    chat_id: z.int().negative().optional().describe('Only for members'),
  })
  .meta({ id: 'InviteLinkPreview', description: 'The chat that an invite link leads to.' });

export const joinedByLink = z
  .strictObject({
    status: z.enum(['joined', 'requested', 'member']).describe('`member` if the caller was a member before'),
    chat_id: z.int().negative().optional().describe('Only for members'),
  })
  .meta({ id: 'JoinedByLink' });

export const joinRequests = pageOf(
  z
    .strictObject({ user, date: unixSeconds })
    .meta({ id: 'JoinRequest', description: 'A person who asks to join.' }),
);
