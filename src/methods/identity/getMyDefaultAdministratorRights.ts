import { z } from 'zod';
import { defineMethod } from '../../server/method.js';
import { viewRights } from '../../view/members.js';
import { administratorRights } from '../../wire/results.js';
import { boolean, optional } from '../../wire/schema.js';

export const getMyDefaultAdministratorRights = defineMethod({
  name: 'getMyDefaultAdministratorRights',
  effect: 'read',
  summary:
    'Returns the rights that the application suggests to anyone who adds the bot to a chat as an administrator.',
  params: z.object({
    for_channels: optional(boolean).describe('Whether to return the rights for channels instead of groups'),
  }),
  result: administratorRights,
  handler: async ({ bot, store }, p) => {
    const type = p.for_channels ? 'channel' : 'group';
    const { defaultRights } = await store.bots.descriptions(bot.id);
    const asked = (defaultRights[type] ?? []).map((name) => [name, true] as const);
    return viewRights(Object.fromEntries(asked), type);
  },
});
