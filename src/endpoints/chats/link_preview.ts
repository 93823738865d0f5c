import { z } from 'zod';
import { chatOfUser, userSender } from '../../actions/compose.js';
import { fail } from '../../errors.js';
import { linkedPage } from '../../rules/page_url.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { appChatId, appMessageId } from '../../wire/fields.js';
import { shownLinkPreview } from '../../wire/results.js';

export const getLinkPreview = defineEndpoint({
  verb: 'GET',
  path: '/api/chats/{chat_id}/messages/{message_id}/link_preview',
  summary:
    'Returns the title and the description of the page that the first link in a text message leads to. The answer may take some seconds.',
  params: z.object({ chat_id: appChatId, message_id: appMessageId }),
  errors: ['chat_not_found', 'not_chat_member', 'message_not_found', 'link_previews_off'],
  result: shownLinkPreview,
  handler: async ({ user, store, linkPreviews }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    const [message] = await store.messages.readMany(chat, userSender(user), [p.message_id]);
    const { content } = (message ?? fail('message_not_found')).record;
    if (linkPreviews === null) return fail('link_previews_off');
    const page = content.media === undefined ? linkedPage(content) : undefined;
    const preview = page === undefined ? null : await linkPreviews.find(user.id, page);
    return preview === null ? {} : { preview: { url: page, ...preview } };
  },
});
