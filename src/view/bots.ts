/** Bots as their owners and other people see them. */
import type { Profile } from '../store/codec.js';
import type { Bot, Commands, Descriptions } from '../store/control.js';

/** A bot in its owner's list, by its name in the owner's language. */
export const viewBot = (profile: Profile) => ({
  id: profile.id,
  is_bot: true,
  username: profile.u,
  name: profile.n,
});

/** A bot with its settings, for its owner: its pictures, and the texts by language, `""` for the default. */
export const viewOwnBot = (profile: Profile, bot: Bot, descriptions: Descriptions, pictures: object) => ({
  ...viewBot(profile),
  ...pictures,
  texts: {
    name: bot.names,
    description: descriptions.description,
    short_description: descriptions.shortDescription,
  },
});

/** A bot's page, in the language of who looks (interface §2). */
export const viewBotPage = (
  profile: Profile,
  texts: { readonly description: string; readonly shortDescription: string },
  pictures: object,
  commands: Commands[string] = [],
) => ({
  id: profile.id,
  username: profile.u,
  name: profile.n,
  description: texts.description,
  short_description: texts.shortDescription,
  ...pictures,
  ...(commands.length === 0 ? {} : { commands }),
});
