/** What messages show of a person. */
import type { Profile } from './codec.js';
import type { User } from './control.js';

export const userProfile = (user: User): Profile => ({
  id: user.id,
  n: user.firstName,
  ...(user.lastName === null ? {} : { l: user.lastName }),
  ...(user.username === null ? {} : { u: user.username }),
  ...(user.languageCode === null ? {} : { g: user.languageCode }),
  x: user.externalId,
});
