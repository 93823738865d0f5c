import { z } from 'zod';
import { viewSizes } from '../../actions/chat_info.js';
import { outsider } from '../../actions/moderation.js';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineMethod } from '../../server/method.js';
import { userProfilePhotos } from '../../wire/results.js';
import { clampedInteger, integer, optional } from '../../wire/schema.js';

/** Returns the profile pictures of a bot or person. A bot or person has at most one picture. */
export const getUserProfilePhotos = defineMethod({
  name: 'getUserProfilePhotos',
  effect: 'read',
  summary: 'Returns the profile pictures of a bot or a person.',
  params: z.object({
    user_id: integer().describe('Id of a bot, or of a person who shares a chat with the bot'),
    offset: optional(clampedInteger(0, limits.id_max)).describe('Number of pictures to skip'),
    limit: optional(clampedInteger(1, 100)).describe('Maximum number of pictures: 1 to 100, clamped'),
  }),
  errors: ['user_id_invalid', 'chat_member_not_found'],
  result: userProfilePhotos,
  handler: async ({ bot, store, files }, p) => {
    if (p.user_id <= 0) fail('user_id_invalid');
    const profile = (await outsider(store, bot.id, null, p.user_id)) ?? fail('chat_member_not_found');
    const avatar =
      profile.bot === 1
        ? (await store.bots.descriptions(p.user_id)).pictures.avatar
        : (await store.users.find(p.user_id))?.avatar;
    const photos = avatar === undefined || avatar.length === 0 ? [] : [viewSizes(files, avatar)];
    return { total_count: photos.length, photos: photos.slice(p.offset ?? 0) };
  },
});
