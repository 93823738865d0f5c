/** Validates usernames of people, bots, groups and channels. */
import { ruleLimits as limits } from './limits.js';

const shape = /^[A-Za-z][A-Za-z0-9_]*$/;

/** Returns whether the text (without `@`) is a valid username: letters, digits and single underscores between them. */
export function validUsername(text: string): boolean {
  return (
    text.length >= limits.username_length_min &&
    text.length <= limits.username_length_max &&
    shape.test(text) &&
    !text.includes('__') &&
    !text.endsWith('_')
  );
}

/** Returns whether the text is a valid bot username, which must end in `bot` in any case. */
export function validBotUsername(text: string): boolean {
  return validUsername(text) && usernameKey(text).endsWith('bot');
}

/** Returns the case-insensitive key of a username. */
export function usernameKey(text: string): string {
  return text.toLowerCase();
}
