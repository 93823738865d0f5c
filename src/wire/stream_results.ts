/** Maps the name of each stream event to the event's data (behaviour §9 and §11). */
import { z } from 'zod';
import { chatDraft } from './account_results.js';
import { reactionPayload } from './post_results.js';
import { draftEvent, message, messageEvent, messageReference, update, user } from './results.js';

const chatId = z.int().describe('Id of the chat');

const reactions = z
  .strictObject({
    post_id: z.int().positive(),
    external_id: z.string(),
    reactions: reactionPayload.shape.reactions,
    my_reactions: reactionPayload.shape.my_reactions,
  })
  .meta({
    id: 'PostReactionsEvent',
    description: 'All reactions on a post. This event is sent at the start of the stream and after changes.',
  });

const ready = z.strictObject({}).meta({ id: 'ReadyEvent', description: 'The stream has started.' });

export const streamEvents = {
  ready,
  message: messageEvent,
  edited_message: message,
  message_deleted: z
    .strictObject({ chat_id: chatId, message_id: z.int().positive() })
    .meta({ id: 'MessageDeletedEvent', description: 'A message was deleted.' }),
  pinned: z
    .strictObject({
      chat_id: chatId,
      pinned_message: z.union([message, messageReference]).optional().describe('Absent after an unpin'),
      notify: z.boolean(),
    })
    .meta({ id: 'PinnedEvent', description: 'A message was pinned or unpinned.' }),
  chat_joined: z.strictObject({ chat_id: chatId }).meta({
    id: 'ChatJoinedEvent',
    description: 'The caller created, opened or joined a chat, or somebody added the caller to a chat.',
  }),
  chat_left: z
    .strictObject({ chat_id: chatId })
    .meta({ id: 'ChatLeftEvent', description: 'The caller left a chat or was removed from it.' }),
  chat_read: z.strictObject({ chat_id: chatId, message_id: z.int().positive() }).meta({
    id: 'ChatReadEvent',
    description: 'The caller marked a chat as read up to a message, in this or another session.',
  }),
  chat_settings: z.strictObject({ chat_id: chatId }).meta({
    id: 'ChatSettingsEvent',
    description:
      'Read the chat again, because one of these changed: the caller’s settings for the chat (muted, pinned, archived; in any session), a block between the two people of the chat, or the name or avatar of the other person or of the caller’s bot in the chat.',
  }),
  scheduled_posts: z.strictObject({ chat_id: chatId }).meta({
    id: 'ScheduledPostsEvent',
    description:
      'One of the caller’s scheduled posts in this channel was added, changed, deleted, published or refused. Read the list again.',
  }),
  profile: z.strictObject({}).meta({
    id: 'ProfileEvent',
    description:
      'The caller changed their name, avatar or settings, in this or another session. Call `GET /api/me` again.',
  }),
  chat_draft: chatDraft,
  chat_action: z
    .strictObject({
      chat_id: chatId,
      from_id: z.int().positive().describe('Id of the bot or person'),
      from: user.optional().describe('Absent in a direct chat'),
      action: z.string(),
    })
    .meta({
      id: 'ChatActionEvent',
      description: 'A bot or another person is doing something in a chat, for instance typing.',
    }),
  message_draft: draftEvent,
  message_draft_stopped: z
    .strictObject({
      chat_id: chatId,
      draft_id: z.int(),
      kept: z.boolean().describe('Whether the draft stays visible'),
    })
    .meta({
      id: 'MessageDraftStoppedEvent',
      description: 'The caller told a bot to stop writing a message, in this or another session.',
    }),
  callback_answer: z
    .strictObject({
      chat_id: chatId,
      callback_query_id: z.string(),
      text: z.string().optional(),
      show_alert: z.boolean(),
      url: z.string().optional(),
    })
    .meta({
      id: 'CallbackAnswerEvent',
      description: 'A bot answered the caller’s press of an inline button.',
    }),
  post_reactions: reactions,
  reset: z
    .strictObject({ chat_id: chatId })
    .meta({ id: 'ResetEvent', description: 'Some events of this chat were lost. Read the chat again.' }),
};

export const postStreamEvents = { ready, post_reactions: reactions };

/** The events of `streamUpdates`, which sends the updates of a bot. */
export const updateEvents = {
  update,
  end: z
    .strictObject({
      ok: z.literal(false),
      error_code: z.int(),
      description: z.string(),
      parameters: z.strictObject({ retry_after: z.int() }).optional(),
    })
    .meta({
      id: 'StreamEndEvent',
      description:
        'The stream has ended because of an error that `getUpdates` would also have returned. Do not reconnect after 401 or 409.',
    }),
};
