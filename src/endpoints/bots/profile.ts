import { z } from 'zod';
import { viewPictures } from '../../actions/pictures.js';
import { fail } from '../../errors.js';
import { commandsFor } from '../../rules/commands.js';
import { textIn } from '../../rules/identity_texts.js';
import { defineEndpoint } from '../../server/endpoint.js';
import { botProfile } from '../../store/core/profiles.js';
import { viewBotPage } from '../../view/bots.js';
import { botPage } from '../../wire/results.js';

export const showBot = defineEndpoint({
  verb: 'GET',
  path: '/api/bots/{username}',
  summary: "Returns the profile of a bot in the caller's language.",
  params: z.object({ username: z.string() }),
  errors: ['bot_not_found'],
  result: botPage,
  handler: async ({ user, store, files }, p) => {
    const bot = (await store.bots.findByUsername(p.username.replace(/^@/, ''))) ?? fail('bot_not_found');
    const [said, commands, menuButton, canWrite] = await Promise.all([
      store.bots.descriptions(bot.id),
      store.bots.commands(bot.id),
      store.bots.menuButton(bot.id, user.id),
      store.bots.mayWrite(bot.id, user.id),
    ]);
    const language = user.languageCode;
    return viewBotPage(
      botProfile(bot, language),
      {
        description: textIn(said.description, language, ''),
        shortDescription: textIn(said.shortDescription, language, ''),
      },
      viewPictures(files, said.pictures),
      {
        commands: commandsFor(commands, user.id, language),
        menuButton,
        defaultRights: said.defaultRights,
      },
      canWrite,
    );
  },
});
