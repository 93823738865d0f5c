/** Suggests bots and public chats to people with few chats (decision 0082). */
import { z } from 'zod';
import { viewPictures } from '../../actions/pictures.js';
import { textIn } from '../../rules/identity_texts.js';
import { defineEndpoint, type EndpointContext } from '../../server/endpoint.js';
import type { User } from '../../store/core/control.js';
import { botProfile } from '../../store/core/profiles.js';
import { suggestions } from '../../wire/chat_results.js';

/**
 * Returns the bot or public chat with this username as a suggestion. Null if no bot or public chat has this username.
 */
async function suggestionOf({ store, files, user }: EndpointContext<User>, username: string) {
  const bot = await store.bots.findByUsername(username);
  if (bot) {
    const { shortDescription, pictures } = await store.bots.descriptions(bot.id);
    const profile = botProfile(bot, user.languageCode);
    const about = textIn(shortDescription, user.languageCode, '');
    const { avatar } = viewPictures(files, pictures);
    return {
      ...{ type: 'bot', id: bot.id, username: bot.username, title: profile.n },
      ...(about === '' ? {} : { about }),
      ...(avatar === undefined ? {} : { avatar }),
    };
  }
  const ref = await store.chats.findByUsername(username);
  const chat = ref && (await store.chats.find(ref));
  if (!chat?.profile.u) return null;
  return { type: chat.profile.t, id: chat.profile.id, username: chat.profile.u, title: chat.profile.n };
}

export const listSuggestions = defineEndpoint({
  verb: 'GET',
  path: '/api/suggestions',
  summary:
    'Lists the bots and public chats that the setting SUGGESTED_CHATS names, in the order of the setting. Each suggestion counts as one call for rate limits.',
  params: z.object({}),
  result: suggestions,
  handler: async (context) => {
    const { store, user, suggested } = context;
    if (suggested.length > 1) await store.fairUse?.more({ id: user.id, isBot: false }, suggested.length - 1);
    const items = [];
    // Looks up one name after another, so that a call uses only one Postgres connection at a time.
    for (const username of suggested) {
      const found = await suggestionOf(context, username);
      if (found !== null) items.push(found);
    }
    return { items };
  },
});
