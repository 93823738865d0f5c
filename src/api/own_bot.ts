/** A bot with its settings, as several endpoints answer its owner. */
import { botProfile } from '../store/bots.js';
import type { Bot, User } from '../store/control.js';
import type { Store } from '../store/store.js';
import { viewOwnBot } from '../view/bots.js';

export async function ownBot(store: Store, bot: Bot, user: User) {
  const [said, access] = await Promise.all([store.bots.descriptions(bot.id), store.bots.writeAccess(bot.id)]);
  return viewOwnBot(botProfile(bot, user.languageCode), bot, said, access);
}
