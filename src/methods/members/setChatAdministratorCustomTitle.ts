import { z } from 'zod';
import { memberErrors, memberParams, moderated } from '../../actions/moderation.js';
import { fail } from '../../errors.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { isLongerThan } from '../../rules/text.js';
import { defineMethod } from '../../server/method.js';
import { done } from '../../wire/results.js';
import { answer } from '../../wire/schema.js';

export const setChatAdministratorCustomTitle = defineMethod({
  name: 'setChatAdministratorCustomTitle',
  effect: 'configure',
  summary: 'Sets the title of an administrator whom the bot promoted.',
  params: z.object({
    ...memberParams,
    custom_title: z
      .string({ error: 'a string' })
      .transform((text) => text.trim())
      .refine((text) => !isLongerThan(text, limits.custom_title_length_max), {
        error: answer('custom_title_too_long'),
      })
      .refine((text) => !/\p{Extended_Pictographic}/u.test(text), { error: answer('custom_title_emoji') })
      .describe(
        `Title of up to ${limits.custom_title_length_max} characters without emoji. An empty text removes the title`,
      ),
  }),
  errors: [
    ...memberErrors.filter((name) => name !== 'cant_remove_owner'),
    'groups_only',
    'custom_title_too_long',
    'custom_title_emoji',
    'only_creator_title',
    'member_not_administrator',
    'cant_change_title',
  ],
  result: done,
  handler: async (context, p) => {
    const { chat, kind, by, member } = await moderated(context, p, 'groups_only');
    if (kind !== 'group') fail('groups_only');
    await context.store.chats.setCustomTitle(chat, by, member, p.custom_title);
    return true;
  },
});
