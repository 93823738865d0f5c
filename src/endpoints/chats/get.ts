import { z } from 'zod';
import { chatSummary } from '../../actions/chat_summary.js';
import { chatOfUser } from '../../actions/compose.js';
import { viewPicture } from '../../actions/pictures.js';
import { readableChat } from '../../actions/reading.js';
import { fail } from '../../errors.js';
import { isInChat } from '../../rules/rights.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { isDirect } from '../../store/core/keys.js';
import { viewChat } from '../../view/users.js';
import { listedChat, publicChat } from '../../wire/chat_results.js';
import { appChatId } from '../../wire/fields.js';

export const getChat = defineEndpoint({
  verb: 'GET',
  path: '/api/chats/{chat_id}',
  summary: 'Returns one of the caller’s chats.',
  params: z.object({ chat_id: appChatId }),
  errors: ['chat_not_found', 'not_chat_member'],
  result: listedChat,
  handler: async (context, p) => {
    const { user, store } = context;
    const chat = await readableChat(store, user, p.chat_id);
    const [marks, muted, places, about] = await Promise.all([
      store.readMarks.of(user.id, [chat.id]),
      store.mutes.of(user.id, [chat.id]),
      store.places.of(user.id, [chat.id]),
      isDirect(chat) ? null : store.chats.details(chat),
    ]);
    const settings = { marks, muted, places };
    const summary = (await chatSummary(context, chat, user, settings)) ?? fail('chat_not_found');
    return about?.description ? { ...summary, description: about.description } : summary;
  },
});

export const getPublicChat = defineEndpoint({
  verb: 'GET',
  path: '/api/chats/{chat_id}/about',
  summary:
    'Returns the public information about a channel, or about a group that has a username. For a group without a username, only members get this information.',
  params: z.object({ chat_id: appChatId }),
  errors: ['chat_not_found'],
  result: publicChat,
  handler: async ({ user, store, files }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    const found = isDirect(chat) ? null : await store.chats.find(chat);
    const isPublic = found?.kind === 'channel' || (found?.kind === 'group' && found.profile.u !== undefined);
    const { status } = await store.chats.member(chat, user.id);
    if (!found || !(isPublic || isInChat(status))) return fail('chat_not_found');
    const { description, photo } = await store.chats.details(chat);
    return {
      ...viewChat(found.profile),
      member_count: found.profile.m ?? 0,
      ...(description === '' ? {} : { description }),
      ...(photo.length > 0 ? { avatar: viewPicture(files, photo) } : {}),
    };
  },
});
