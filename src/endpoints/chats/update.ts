import { z } from 'zod';
import { chatDescription, putChatPhoto } from '../../actions/chat_info.js';
import { pictureErrors, viewPicture } from '../../actions/pictures.js';
import { readableChat } from '../../actions/reading.js';
import { ApiError, fail } from '../../errors.js';
import { defineEndpoint } from '../../server/endpoint.js';
import type { User } from '../../store/core/control.js';
import { type ChatRef, isDirect } from '../../store/core/keys.js';
import type { Store } from '../../store/store.js';
import { appChatId, chatTitle } from '../../wire/fields.js';
import { done, picture } from '../../wire/results.js';
import { optional } from '../../wire/schema.js';

async function sharedChatOf(store: Store, user: User, id: number): Promise<ChatRef> {
  const chat = await readableChat(store, user, id);
  return isDirect(chat) ? fail('chat_not_found') : chat;
}

export const updateChat = defineEndpoint({
  verb: 'PATCH',
  path: '/api/chats/{chat_id}',
  summary: 'Changes the title or the description of a group or channel.',
  params: z.object({
    chat_id: appChatId,
    title: optional(chatTitle),
    description: chatDescription.optional(),
  }),
  errors: [
    'chat_not_found',
    'not_chat_member',
    'title_invalid',
    'description_too_long',
    'title_not_allowed',
    'about_not_allowed',
  ],
  result: done,
  handler: async ({ user, store }, p) => {
    const chat = await sharedChatOf(store, user, p.chat_id);
    const by = { id: user.id, is_bot: false };
    if (p.title !== undefined) await store.chats.setTitle(chat, by, p.title);
    if (p.description !== undefined)
      await store.chats.setDescription(chat, by, p.description).catch((error: unknown) => {
        if (!(error instanceof ApiError && error.kind === 'about_not_modified')) throw error;
      });
    return true;
  },
});

export const putPhoto = defineEndpoint({
  verb: 'PUT',
  path: '/api/chats/{chat_id}/photo',
  summary:
    'Sets the photo of a group or channel. The request body is a PNG, JPEG or WebP. The photo is cropped to a circle.',
  params: z.object({ chat_id: appChatId }),
  rawBody: true,
  errors: [
    'chat_not_found',
    'not_chat_member',
    'photo_not_allowed',
    ...pictureErrors,
    'picture_too_small',
    'too_much_stored',
  ],
  result: picture,
  handler: async ({ user, store, files, request }, p) => {
    const chat = await sharedChatOf(store, user, p.chat_id);
    const by = { id: user.id, is_bot: false };
    return viewPicture(files, await putChatPhoto({ store, files }, chat, by, user.id, request.body));
  },
});

export const removePhoto = defineEndpoint({
  verb: 'DELETE',
  path: '/api/chats/{chat_id}/photo',
  summary: 'Removes the photo of a group or channel.',
  params: z.object({ chat_id: appChatId }),
  errors: ['chat_not_found', 'not_chat_member', 'photo_not_allowed', 'chat_not_modified'],
  result: done,
  handler: async ({ user, store }, p) => {
    const chat = await sharedChatOf(store, user, p.chat_id);
    await store.chats.setPhoto(chat, { id: user.id, is_bot: false }, null, []);
    return true;
  },
});
