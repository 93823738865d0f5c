/** The form of usernames of users, bots, groups and channels. */
import { limits } from '../limits.js';

const shape = /^[A-Za-z][A-Za-z0-9_]*$/;

/** Whether the text (without `@`) can be a username: letters, digits and single underscores between them. */
export function validUsername(text: string): boolean {
  return (
    text.length >= limits.username_length_min &&
    text.length <= limits.username_length_max &&
    shape.test(text) &&
    !text.includes('__') &&
    !text.endsWith('_')
  );
}

/** Whether the text can be a bot's username: it ends in `bot`, in any case. */
export function validBotUsername(text: string): boolean {
  return validUsername(text) && usernameKey(text).endsWith('bot');
}

/** What two spellings of one username have in common. */
export function usernameKey(text: string): string {
  return text.toLowerCase();
}
