import { z } from 'zod';
import { menuButtonChat, menuButtonErrors } from '../../actions/menu_buttons.js';
import { defineMethod } from '../../server/method.js';
import { menuButton } from '../../wire/results.js';
import { integer, optional } from '../../wire/schema.js';

export const getChatMenuButton = defineMethod({
  name: 'getChatMenuButton',
  effect: 'read',
  summary: 'Returns the menu button that a person sees, or the default menu button.',
  params: z.object({
    chat_id: optional(integer()).describe('Id of the person. If absent, the default button is returned'),
  }),
  errors: menuButtonErrors,
  result: menuButton,
  handler: async ({ bot, store }, p) => {
    const user = await menuButtonChat(store, bot, p.chat_id);
    return (await store.bots.menuButton(bot.id, user)) ?? { type: 'default' };
  },
});
