import { z } from 'zod';
import { menuButtonChat, menuButtonErrors } from '../../actions/menu_buttons.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { checkMenuButton } from '../../rules/menu_button.js';
import { defineMethod } from '../../server/method.js';
import { answer, integer, json, optional } from '../../wire/schema.js';

const unparsable = { error: answer('menu_button_unparsable') };

const menuButton = json(
  z.object(
    {
      type: z.enum(['default', 'commands', 'web_app'], { error: answer('menu_button_unsupported') }),
      text: z.string(unparsable).optional(),
      web_app: z.object({ url: z.string(unparsable) }, unparsable).optional(),
    },
    unparsable,
  ),
);

/** Sets the menu button. As in the reference server, the button is checked before the chat. */
export const setChatMenuButton = defineMethod({
  name: 'setChatMenuButton',
  effect: 'configure',
  summary: 'Sets the menu button for one person, or the default menu button.',
  params: z.object({
    chat_id: optional(integer()).describe('Id of the person. If absent, the default button is set'),
    menu_button: optional(menuButton).describe(
      `\`default\` removes the button. The text of a \`web_app\` button has up to ${limits.menu_button_text_length_max} characters`,
    ),
  }),
  errors: [
    ...menuButtonErrors,
    'menu_button_unparsable',
    'menu_button_unsupported',
    'button_text_invalid',
    'button_url_invalid',
  ],
  handler: async ({ bot, store }, p) => {
    const button = checkMenuButton(p.menu_button ?? { type: 'default' });
    await store.bots.setMenuButton(bot.id, await menuButtonChat(store, bot, p.chat_id), button);
  },
});
