import { z } from 'zod';
import { rightNames } from '../../rules/rights.js';
import { defineMethod } from '../../server/method.js';
import { boolean, json, optional } from '../../wire/schema.js';

const right = optional(boolean);

const rights = json(
  z.object(
    {
      is_anonymous: optional(
        boolean.pipe(z.literal(false, { error: 'false: administrators are not anonymous' })),
      ),
      can_manage_chat: right,
      ...Object.fromEntries(rightNames.map((name) => [name, right])),
    },
    { error: 'an object of rights' },
  ),
);

export const setMyDefaultAdministratorRights = defineMethod({
  name: 'setMyDefaultAdministratorRights',
  effect: 'configure',
  summary:
    'Sets the rights that the application suggests to anyone who adds the bot to a chat as an administrator.',
  params: z.object({
    rights: optional(rights).describe('Absent rights are not asked for; without `rights`, none are'),
    for_channels: optional(boolean).describe('Whether the rights are for channels instead of groups'),
  }),
  handler: async ({ bot, store }, p) => {
    const given = (p.rights ?? {}) as Readonly<Record<string, unknown>>;
    const asked = ['can_manage_chat', ...rightNames].filter((name) => given[name] === true);
    await store.bots.setDefaultRights(bot.id, p.for_channels ? 'channel' : 'group', asked);
  },
});
