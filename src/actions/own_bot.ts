/** Builds the view of a bot with its settings for the bot's owner. */
import type { Files } from '../files/files.js';
import type { Bot, User } from '../store/core/control.js';
import { botProfile } from '../store/core/profiles.js';
import type { Store } from '../store/store.js';
import { viewOwnBot } from '../view/bots.js';
import { viewPictures } from './pictures.js';

export async function ownBot(store: Store, files: Files, bot: Bot, user: User) {
  const [said, access] = await Promise.all([store.bots.descriptions(bot.id), store.bots.writeAccess(bot.id)]);
  const pictures = viewPictures(files, said.pictures);
  return viewOwnBot(botProfile(bot, user.languageCode), bot, said, access, pictures);
}
