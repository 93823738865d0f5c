/** Defines the parameter schemas shared by application endpoints. */
import { z } from 'zod';
import { ruleLimits as limits } from '../rules/limits.js';
import { searchWords } from '../rules/search.js';
import { isBlank, isLongerThan } from '../rules/text.js';
import { validBotUsername, validUsername } from '../rules/usernames.js';
import { answer, boolean, integer, optional, text } from './schema.js';

/** Returns the error `refusal` for an invalid parameter. An absent parameter is reported as required. */
const unless = (refusal: string) => (issue: { readonly input?: unknown }) =>
  issue.input === undefined ? 'given' : refusal;

const filled = (max: number, refusal: string) =>
  z
    .string({ error: unless(refusal) })
    .transform((text) => text.trim())
    .refine((text) => text.length > 0 && !isLongerThan(text, max), { error: refusal });

const id = (refusal: string) =>
  z.preprocess(
    (value) => (typeof value === 'string' && /^-?\d{1,13}$/.test(value) ? Number(value) : value),
    z.number({ error: refusal }).int({ error: refusal }),
  );

/** Accepts the id of a person or a bot. These ids are positive. The ids of groups and channels are negative. */
const positiveId = (refusal: string) => id(refusal).pipe(z.number().positive({ error: refusal }));

export const userId = positiveId(answer('user_not_found')).describe('Id of a person or a bot');
export const botId = positiveId(answer('bot_not_found')).describe('Id of a bot of the caller');
export const appChatId = id(answer('chat_not_found')).describe(
  'Id of the chat; for a direct chat, the id of the bot',
);
export const appMessageId = id(answer('message_not_found')).describe('Id of the message in its chat');
export const pageSize = integer()
  .pipe(z.number())
  .transform((n) => Math.min(limits.page_size_max, Math.max(1, n)))
  .describe(
    `Maximum number of items: 1 to ${limits.page_size_max}, clamped; default ${limits.page_size_default}`,
  );

const cursorError = 'a cursor of an earlier answer';
export const numberCursor = optional(
  text.regex(/^\d{1,15}$/, { error: cursorError }).transform(Number),
).describe('`next_cursor` of the previous page');

const queryError = `1 to ${limits.search_words_max} words of at most ${limits.search_query_bytes_max} bytes`;
/** Accepts a search query. The parsed value is a list of words, as converted by `foldCase`. */
export const searchQuery = z
  .string({ error: ({ input }) => (input === undefined ? '' : queryError) })
  .refine((given) => Buffer.byteLength(given) <= limits.search_query_bytes_max, { error: queryError })
  .transform((given) => searchWords(given) ?? [])
  .refine((words) => words.length > 0, { error: queryError });
/** Returns the description of a search query. `what` names the objects to find. */
export const queryText = (what: string): string =>
  `${queryError}; ${what} matches if it contains every word, also as a part of other words; upper and lower case are equal`;

const statusError = 'delivered, failed or an HTTP status';
/** Selects delivery attempts by their outcome. */
export const attemptStatus = optional(
  text.regex(/^(delivered|failed|[1-5]\d\d)$/, { error: statusError }),
).describe('`delivered`, `failed` or an HTTP status');

const usernameIf = (isValid: (name: string) => boolean) =>
  z
    .string({ error: unless(answer('username_invalid')) })
    .refine(isValid, { error: answer('username_invalid') });
export const username = usernameIf(validUsername);
export const botUsername = usernameIf(validBotUsername);
/**
 * Accepts a username with or without `@`, even one that no person can have. The endpoint then reports that the username
 * is unknown.
 */
export const usernameOfPerson = z
  .string({ error: 'a username' })
  .regex(/^@?\w{1,32}$/, { error: 'a username' })
  .transform((name) => name.replace(/^@/, ''));
/** Accepts a person's username or id. Usernames begin with a letter, so a text of digits is an id. */
export const usernameOrId = usernameOfPerson.describe(
  'Username of the person, or the id of a person with whom the caller shares a chat',
);
/** Accepts an ISO 639-1 language code. */
export const languageCode = z.string().regex(/^[a-z]{2}$/, { error: answer('language_invalid') });
export const personName = filled(limits.person_name_length_max, answer('name_invalid'));
/** Accepts a last name. An empty text removes the last name. Error: `name_invalid`. */
export const lastName = z
  .string({ error: answer('name_invalid') })
  .transform((text) => text.trim())
  .refine((text) => !isLongerThan(text, limits.person_name_length_max), { error: answer('name_invalid') });
/** Accepts a name. Errors: `name_invalid`, `name_too_long`. */
const nameOf = (max: number) =>
  z
    .string({ error: unless(answer('name_invalid')) })
    .transform((text) => text.trim())
    .refine((text) => text.length > 0, { error: answer('name_invalid') })
    .refine((text) => !isLongerThan(text, max), { error: answer('name_too_long') });
export const botName = nameOf(limits.bot_name_length_max);
export const tokenName = nameOf(limits.user_token_name_length_max).describe(
  `Name chosen by the caller, up to ${limits.user_token_name_length_max} characters`,
);
/** Accepts an inline bot's placeholder, which may be empty. */
export const inlinePlaceholder = z
  .string({ error: 'a string' })
  .transform((text) => text.replace(/\s+/g, ' ').trim())
  .refine((text) => !isLongerThan(text, limits.inline_placeholder_length_max), {
    error: answer('placeholder_too_long'),
  });
export const externalSubject = z
  .string({ error: unless(answer('subject_invalid')) })
  .refine((given) => !isBlank(given) && !isLongerThan(given, limits.external_subject_length_max), {
    error: answer('subject_invalid'),
  })
  .describe("The person's subject at the identity provider, from the claim set by JWT_SUBJECT_CLAIM");
export const chatTitle = filled(limits.chat_title_length_max, answer('title_invalid'));

/** A parameter that must be `true`, by which the caller confirms a call that cannot be undone. */
export const confirm = boolean.pipe(z.literal(true, { error: 'true' })).describe('Must be true');
