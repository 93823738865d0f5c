/**
 * Defines the parameter schemas shared by methods and endpoints. They accept the forms that client libraries send:
 * integers and booleans as text, nested values as JSON text. A schema's error message is the end of the sentence
 * `parameter "x" must be …`. A message that begins with `!` is the name of an entry in the error catalogue.
 */
import { z } from 'zod';
import { ApiError, type ErrorName } from '../errors.js';
import { parseJson } from '../rules/json.js';
import { ruleLimits as limits } from '../rules/limits.js';
import { isLongerThan } from '../rules/text.js';

export const answer = (kind: ErrorName): string => `!${kind}`;

const integerText = /^-?\d{1,16}$/;

const asNumber = (value: unknown) =>
  typeof value === 'string' && integerText.test(value) ? Number(value) : value;

/** Also accepts `True` and `False`, because Python libraries write booleans like this in forms. */
const asBoolean = (given: unknown) => {
  const value = typeof given === 'string' ? given.toLowerCase() : given;
  if (value === 'true' || value === '1' || value === 1) return true;
  if (value === 'false' || value === '0' || value === 0) return false;
  return given;
};

/**
 * Parses a nested value that is sent as JSON text. Returns text that is not JSON unchanged, so that the schema refuses
 * it. Error: `bad_unicode`.
 */
const asJson = (value: unknown) => {
  if (typeof value !== 'string') return value;
  try {
    return parseJson(value);
  } catch (error) {
    if (error instanceof ApiError && error.kind === 'bad_unicode') throw error;
    return value;
  }
};

const badPolicy = { error: answer('retry_policy_invalid') };

export const integer = (error = 'an integer') => z.preprocess(asNumber, z.number({ error }).int({ error }));

const decimalText = /^-?\d{1,3}(\.\d{1,20})?$/;

export function decimal(min: number, max: number) {
  const error = `a number from ${min} to ${max}`;
  const asDecimal = (value: unknown) =>
    typeof value === 'string' && decimalText.test(value) ? Number(value) : value;
  return z.preprocess(asDecimal, z.number({ error }).min(min, { error }).max(max, { error }));
}

export function shortText(max: number) {
  const error = `a text of 1 to ${max} characters`;
  return z
    .string({ error: ({ input }) => (input === undefined ? '' : error) })
    .refine((given) => given !== '' && !isLongerThan(given, max), { error });
}

export const unsupported = (what: string) =>
  optional(z.undefined({ error: `absent: ${what}` })).describe(`Not supported: ${what}`);

/** Accepts an integer. A value outside of the range becomes `min` or `max`. */
export const clampedInteger = (min: number, max: number) =>
  integer().transform((value) => Math.min(max, Math.max(min, value)));

export const boolean = z.preprocess(asBoolean, z.boolean({ error: 'a boolean' }));

export const text = z.string({ error: 'a string' });

export const messageText = z
  .string({ error: (issue) => (issue.input === undefined ? answer('text_empty') : 'a string') })
  .describe(`Text of 1 to ${limits.text_length_max} characters, counted after entities are parsed`);

/**
 * Returns whether a value contains more than `valuesMax` values. Null members of objects count as absent and are
 * removed. The count ends as soon as it exceeds `valuesMax`. `parseJson` limits how deeply values are nested.
 */
function holdsTooMuch(value: unknown, valuesMax: number): boolean {
  let left = valuesMax;
  const count = (each: unknown): boolean => {
    if (--left < 0) return true;
    if (typeof each !== 'object' || each === null) return false;
    if (Array.isArray(each)) return each.some(count);
    for (const [name, member] of Object.entries(each)) {
      if (member === null) delete (each as Record<string, unknown>)[name];
      else if (count(member)) return true;
    }
    return false;
  };
  return count(value);
}

/**
 * The replacement for a nested value that is too large. No schema for nested values accepts a boolean, so the parameter
 * is refused with its usual error.
 */
const tooMuch = true;

/**
 * Cuts a list after its first invalid item, so that the other items are not checked. The answer mentions only this
 * item, and checking an invalid item is slow.
 */
function upToWrong(list: readonly unknown[], items: z.ZodType): readonly unknown[] {
  const wrong = list.findIndex((item) => !items.safeParse(item).success);
  return wrong < 0 ? list : list.slice(0, wrong + 1);
}

/**
 * Returns a schema that refuses a nested value with more than `valuesMax` values. Without this limit, a check could
 * take long, because each invalid value creates an error. If `items` is given, a long list is checked only up to its
 * first invalid item.
 */
export const json = <T extends z.ZodType>(
  schema: T,
  {
    valuesMax = limits.json_values_max,
    items,
  }: { readonly valuesMax?: number; readonly items?: z.ZodType } = {},
) =>
  z.preprocess((given) => {
    const value = asJson(given);
    if (holdsTooMuch(value, valuesMax)) return tooMuch;
    const isLong = items !== undefined && Array.isArray(value) && value.length > limits.entities_max;
    return isLong ? upToWrong(value, items) : value;
  }, schema);

/**
 * Treats '' and null as absent, because libraries send them for missing parameters. Some libraries send the text `null`
 * for an empty list or object, so this text also counts as absent. A parameter that allows any text, such as a caption,
 * keeps the text `null`.
 */
export const optional = <T extends z.ZodType>(schema: T) => {
  const isText = schema instanceof z.ZodString && !schema.def.checks?.length;
  return z.preprocess(
    (value) => (value === '' || value === null || (value === 'null' && !isText) ? undefined : value),
    schema.optional(),
  );
};

/**
 * Returns a schema for a list that may be absent. As in the reference server of the Bot API, a value that is not a list
 * counts as absent. But a text that starts with `[` must be a valid list.
 */
const optionalList = <T extends z.ZodType>(items: T, error: string) =>
  z.preprocess((given) => {
    const value = asJson(given);
    const list = Array.isArray(value) || (typeof value === 'string' && value.trimStart().startsWith('['));
    return list ? value : undefined;
  }, json(z.array(items, { error }), { valuesMax: limits.list_values_max, items }).optional());

const badRouteName = { error: answer('route_name_invalid') };

export const routeName = z
  .string({ error: ({ input }) => (input === undefined ? '' : answer('route_name_invalid')) })
  .regex(new RegExp(`^[A-Za-z0-9_-]{1,${limits.route_name_length_max}}$`), badRouteName)
  .describe(
    `Name of the route: 1 to ${limits.route_name_length_max} letters, digits, hyphens and underscores`,
  );

const policyNumber = (min: number, max: number) =>
  z.number(badPolicy).min(min, badPolicy).max(max, badPolicy);

/** Accepts the retry policy for failed deliveries of a webhook (behaviour §10). */
export const retryPolicy = optional(
  json(
    z.strictObject(
      {
        first_delay: policyNumber(1, limits.retry_first_delay_s_max).int(badPolicy),
        factor: policyNumber(1, limits.retry_factor_max),
        max_age: policyNumber(limits.retry_age_s_min, limits.retry_age_s_max).int(badPolicy),
      },
      badPolicy,
    ),
  ),
).describe(
  `How failed deliveries are retried. \`first_delay\`: seconds before the first retry, 1 to ${limits.retry_first_delay_s_max}. \`factor\`: factor of each later delay, 1 to ${limits.retry_factor_max}; no delay is longer than an hour. \`max_age\`: seconds after which an update becomes a dead letter, ${limits.retry_age_s_min} to ${limits.retry_age_s_max}`,
);

const idMax = limits.id_max - 1;

/**
 * The error of an invalid chat id. Every branch of the schema's union needs it, because zod reports only the error of
 * the matching branch.
 */
const noChat = {
  error: ({ input }: { readonly input?: unknown }) =>
    answer(input === undefined || input === '' ? 'chat_id_empty' : 'chat_not_found'),
};

/** Accepts the id of a chat, or the `@username` of a public chat. */
export const chatId = z
  .preprocess(
    asNumber,
    z.union(
      [
        z.number(noChat).int(noChat).min(-idMax, noChat).max(idMax, noChat),
        z.string(noChat).regex(/^@\w+$/, noChat),
      ],
      noChat,
    ),
  )
  .describe('Id of the chat, `@username` of a public chat, or id of the person for a direct chat');

/**
 * Accepts the id of the person in a direct chat. A call with this parameter does not count against the rate limit of
 * the chat.
 */
export const privateChatId = z
  .preprocess(asNumber, z.number(noChat).int(noChat).min(-idMax, noChat).max(idMax, noChat))
  .describe('Id of the person');

const noMessage = { error: 'an integer' };
/** Uses only one `pipe` of zod. With two, zod would not report an absent parameter as required. */
export const messageId = z
  .preprocess(asNumber, z.number(noMessage).int(noMessage).min(0, noMessage).max(idMax, noMessage))
  .describe('Id of the message in its chat');

/** Accepts 1 to `limits.messages_batch_max` ids, in any order. */
export const messageIds = json(
  z
    .array(messageId, {
      error: ({ input }) =>
        input === undefined || input === null || input === ''
          ? answer('message_ids_empty')
          : 'an array of integers',
    })
    .min(1, { error: answer('message_ids_empty') })
    .max(limits.messages_batch_max, { error: answer('too_many_message_ids') }),
).describe(`Ids of 1 to ${limits.messages_batch_max} messages in one chat`);

export const parseMode = z
  .preprocess(
    (value) => (value === '' || value === null || value === 'null' ? undefined : value),
    text.optional(),
  )
  .describe('`HTML`, `MarkdownV2` or `Markdown`; without it the text is plain');

export const entityInput = z.object(
  {
    type: text,
    offset: integer(),
    length: integer(),
    url: text.optional(),
    user: z.object({ id: integer() }).optional(),
    language: text.optional(),
    custom_emoji_id: text.optional(),
  },
  { error: 'an array of entities' },
);

export const entities = optionalList(entityInput, 'an array of entities').describe(
  `Formatting entities instead of parse_mode, up to ${limits.entities_max}; offsets and lengths in UTF-16 code units`,
);

const unparsable = answer('keyboard_unparsable');

export const buttonStyles = ['danger', 'success', 'primary'] as const;
const buttonText = z.string({ error: unparsable });
const linkButton = z.object({ url: buttonText }, { error: unparsable });

const button = z.looseObject(
  {
    text: buttonText,
    callback_data: buttonText.optional(),
    url: buttonText.optional(),
    login_url: linkButton.optional(),
    web_app: linkButton.optional(),
    copy_text: z.object({ text: buttonText }, { error: unparsable }).optional(),
    switch_inline_query: buttonText.optional(),
    switch_inline_query_current_chat: buttonText.optional(),
    switch_inline_query_chosen_chat: z
      .object({ query: buttonText.optional() }, { error: unparsable })
      .optional(),
    style: z.enum(buttonStyles, { error: unparsable }).optional(),
  },
  { error: unparsable },
);

const keyboardFlag = z.boolean({ error: unparsable }).optional();
const rowsOf = <T extends z.ZodType>(each: T) =>
  z.array(z.array(each, { error: unparsable }), { error: unparsable }).optional();

/** Accepts a button. A plain string is a button with this text. */
const replyButton = z.union([z.string(), z.looseObject({ text: z.string() })], { error: unparsable });

/** Checks only the structure. `rules/keyboard.ts` checks the limits. */
export const replyMarkup = optional(
  json(
    z.looseObject(
      {
        inline_keyboard: rowsOf(button),
        keyboard: rowsOf(replyButton),
        remove_keyboard: keyboardFlag,
        force_reply: keyboardFlag,
        is_persistent: keyboardFlag,
        resize_keyboard: keyboardFlag,
        one_time_keyboard: keyboardFlag,
        input_field_placeholder: buttonText.optional(),
        selective: keyboardFlag,
      },
      { error: unparsable },
    ),
  ),
).describe(
  `Inline keyboard, reply keyboard, its removal or a forced reply. A keyboard has up to ${limits.keyboard_buttons_max} buttons; callback_data has 1 to ${limits.callback_data_bytes_max} bytes`,
);

export const replyParameters = optional(
  json(
    z.object(
      { message_id: messageId, allow_sending_without_reply: boolean.optional() },
      { error: 'an object with message_id' },
    ),
  ),
).describe('The message to reply to, in the same chat');

const badPreviewUrl = { error: `a URL of up to ${limits.link_preview_url_length_max} characters` };

export const linkPreviewParams = {
  link_preview_options: optional(
    json(
      z.object(
        {
          is_disabled: optional(boolean),
          url: optional(text.max(limits.link_preview_url_length_max, badPreviewUrl)),
          prefer_small_media: optional(boolean),
          prefer_large_media: optional(boolean),
          show_above_text: optional(boolean),
        },
        { error: 'an object of link preview options' },
      ),
    ),
  ).describe(
    'Options of the link preview: `is_disabled`, `url` of the page to show instead of the first link, `show_above_text`, `prefer_small_media` and `prefer_large_media`',
  ),
  disable_web_page_preview: optional(boolean).describe(
    'Has the same effect as `is_disabled` in `link_preview_options`. Ignored if `link_preview_options` is given',
  ),
};

export const allowedUpdates = optionalList(text, 'an array of strings').describe(
  'Update types to receive. Absent keeps the current list; an empty list means the default types',
);
