/**
 * Opens a `web_app` or `login_url` button. The URL contains a signature that proves to the page which person opened it.
 */
import { z } from 'zod';
import { chatOfUser, userSender } from '../../actions/compose.js';
import { loginLink, webAppLink } from '../../actions/signed_links.js';
import { fail } from '../../errors.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { userProfile } from '../../store/chats/chats.js';
import { messageFlags } from '../../store/core/codec.js';
import { appChatId, appMessageId } from '../../wire/fields.js';
import { signedLink } from '../../wire/results.js';

export const openLink = defineEndpoint({
  verb: 'POST',
  path: '/api/chats/{chat_id}/messages/{message_id}/link',
  summary: 'Returns the URL of a `web_app` or `login_url` button, with signed data about the caller.',
  params: z.object({
    chat_id: appChatId,
    message_id: appMessageId,
    url: z.string({ error: 'a string' }).describe('Address of the button'),
  }),
  errors: [
    'chat_not_found',
    'not_chat_member',
    'bot_blocked_by_you',
    'bot_not_found',
    'message_not_found',
    'button_not_found',
    'token_blocked',
  ],
  result: signedLink,
  handler: async ({ user, store }, p) => {
    const chat = chatOfUser(user.id, p.chat_id);
    const [message] = await store.messages.readMany(chat, userSender(user), [p.message_id]);
    const { sender, origin, flags, markup } = message?.record ?? fail('message_not_found');
    const buttons = markup?.inline_keyboard.flat() ?? [];
    const button =
      buttons.find(({ web_app, login_url }) => (web_app ?? login_url)?.url === p.url) ??
      fail('button_not_found');
    // The bot that made the keyboard signs the link. For an inline message, this is the bot in `via`. For a forwarded
    // message, this is the bot that forwarded the message, although `via` still names the original bot.
    const owner = flags & messageFlags.inline ? (origin.via?.id ?? sender) : sender;
    const token = await store.bots.signingToken(owner);
    const sign = button.web_app ? webAppLink : loginLink;
    return { url: sign(p.url, token, userProfile(user), store.time.nowSeconds()) };
  },
});
