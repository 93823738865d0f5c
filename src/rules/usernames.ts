/** Validates usernames of people, bots, groups and channels. */
import { ruleLimits as limits } from './limits.js';

const shape = /^[A-Za-z][A-Za-z0-9_]*$/;

/** Checks a username without `@`. It may contain letters and digits, with single underscores between them. */
export function validUsername(text: string): boolean {
  return (
    text.length >= limits.username_length_min &&
    text.length <= limits.username_length_max &&
    shape.test(text) &&
    !text.includes('__') &&
    !text.endsWith('_')
  );
}

export function validBotUsername(text: string): boolean {
  return validUsername(text) && usernameKey(text).endsWith('bot');
}

export function usernameKey(text: string): string {
  return text.toLowerCase();
}
