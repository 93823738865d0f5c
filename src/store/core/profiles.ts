/** Builds the profiles of people and bots. */
import type { NamesRow } from '../../postgres/accounts/users.js';
import { textIn } from '../../rules/identity_texts.js';
import type { Profile } from './codec.js';
import type { Bot, User } from './control.js';

export const userProfile = (user: User): Profile => ({
  id: user.id,
  n: user.firstName,
  ...(user.lastName === null ? {} : { l: user.lastName }),
  ...(user.username === null ? {} : { u: user.username }),
  ...(user.languageCode === null ? {} : { g: user.languageCode }),
  x: user.externalId,
});

/** Returns the profile in a Postgres row. */
export const namesProfile = (row: NamesRow): Profile => ({
  id: row.id,
  n: row.first_name,
  ...(row.last_name === null ? {} : { l: row.last_name }),
  ...(row.username === null ? {} : { u: row.username }),
  ...(row.language_code === null ? {} : { g: row.language_code }),
  x: row.external_id,
});

/**
 * Returns a bot's profile in a language. If no language is given, or if the viewer is a bot, returns the default
 * profile.
 */
export const botProfile = (
  bot: Pick<Bot, 'id' | 'name' | 'username' | 'names'>,
  language: string | null = null,
): Profile => ({
  id: bot.id,
  bot: 1,
  n: textIn(bot.names, language, bot.name),
  ...(bot.username === '' ? {} : { u: bot.username }),
});
