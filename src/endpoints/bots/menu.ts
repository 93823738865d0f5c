/**
 * Opens the Web App of a bot's menu button. The URL contains a signature that proves to the Web App which person opened
 * it.
 */
import { z } from 'zod';
import { webAppLink } from '../../actions/signed_links.js';
import { fail } from '../../errors.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { userProfile } from '../../store/chats/chats.js';
import { signedLink } from '../../wire/results.js';

export const openMenu = defineEndpoint({
  verb: 'POST',
  path: '/api/bots/{username}/menu',
  summary: 'Returns the URL of a bot’s menu button. The URL contains signed data about the caller.',
  params: z.object({
    username: z.string(),
    url: z.string().describe('the address that the person has seen'),
  }),
  errors: ['bot_not_found', 'cant_write_to_bot', 'button_not_found', 'token_blocked'],
  result: signedLink,
  handler: async ({ user, store }, p) => {
    const bot = (await store.bots.findByUsername(p.username.replace(/^@/, ''))) ?? fail('bot_not_found');
    if (bot.state !== undefined || !(await store.bots.mayWrite(bot.id, user.id))) fail('cant_write_to_bot');
    const button = await store.bots.menuButton(bot.id, user.id);
    // Refuses the call if the bot has changed the button since the person agreed to open this URL.
    if (button?.type !== 'web_app' || button.web_app.url !== p.url) return fail('button_not_found');
    const token = await store.bots.signingToken(bot.id);
    return { url: webAppLink(button.web_app.url, token, userProfile(user), store.time.nowSeconds()) };
  },
});
