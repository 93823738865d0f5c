/**
 * Schemas of parameters, shared by methods and endpoints. They accept what client libraries send: integers and booleans as
 * text, nested values as JSON text. The message of a schema says what the parameter must be; one that begins with `!`
 * names an entry of the error catalogue instead.
 */
import { z } from 'zod';
import { ApiError, type ErrorName } from '../errors.js';
import { limits } from '../limits.js';
import { parseJson } from '../rules/json.js';

/** Makes an entry of the catalogue the answer to whatever a schema refuses. */
export const answer = (kind: ErrorName): string => `!${kind}`;

const integerText = /^-?\d{1,16}$/;

const asNumber = (value: unknown) =>
  typeof value === 'string' && integerText.test(value) ? Number(value) : value;

/** Python libraries that send forms write `True` and `False`. */
const asBoolean = (given: unknown) => {
  const value = typeof given === 'string' ? given.toLowerCase() : given;
  if (value === 'true' || value === '1' || value === 1) return true;
  if (value === 'false' || value === '0' || value === 0) return false;
  return given;
};

/** Nested values may come as JSON text. What is no JSON is left for the schema to refuse. Error: `bad_unicode`. */
const asJson = (value: unknown) => {
  if (typeof value !== 'string') return value;
  try {
    return parseJson(value);
  } catch (error) {
    if (error instanceof ApiError && error.kind === 'bad_unicode') throw error;
    return value;
  }
};

export const integer = (error = 'an integer') => z.preprocess(asNumber, z.number({ error }).int({ error }));

/** Clamped rather than refused. */
export const clampedInteger = (min: number, max: number) =>
  integer().transform((value) => Math.min(max, Math.max(min, value)));

export const boolean = z.preprocess(asBoolean, z.boolean({ error: 'a boolean' }));

export const text = z.string({ error: 'a string' });

/** The text of a message. */
export const messageText = z
  .string({ error: (issue) => (issue.input === undefined ? answer('text_empty') : 'a string') })
  .describe(`Text, 1 to ${limits.text_length_max} characters after entities are parsed`);

/**
 * Removes the members of objects that are null: they count as absent. Returns whether more values than the bound are left, and stops
 * counting there. Values are nested no deeper than `parseJson` lets them be.
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

/** No schema of a nested value takes it: each refuses it in its own words. */
const tooMuch = true;

/** A nested value, of up to `valuesMax` values: a schema looks at them all, and tells of each that is wrong. */
export const json = <T extends z.ZodType>(schema: T, valuesMax: number = limits.json_values_max) =>
  z.preprocess((given) => {
    const value = asJson(given);
    return holdsTooMuch(value, valuesMax) ? tooMuch : value;
  }, schema);

/**
 * An empty value and null count as absent, as libraries send them. So does the text `null`, which libraries write for a nil list or
 * object, but not where any text is allowed: a caption may be that word.
 */
export const optional = <T extends z.ZodType>(schema: T) => {
  const isText = schema instanceof z.ZodString && !schema.def.checks?.length;
  return z.preprocess(
    (value) => (value === '' || value === null || (value === 'null' && !isText) ? undefined : value),
    schema.optional(),
  );
};

/** What is no list counts as absent, as in the reference server. Text that begins like a list is refused where it is none. */
const optionalList = <T extends z.ZodType>(items: T, error: string) =>
  z.preprocess((given) => {
    const value = asJson(given);
    const list = Array.isArray(value) || (typeof value === 'string' && value.trimStart().startsWith('['));
    return list ? value : undefined;
  }, json(z.array(items, { error })).optional());

const idMax = limits.id_max - 1;

/** Told on each branch too: of a union, the branch whose type fits reports alone. */
const noChat = {
  error: ({ input }: { readonly input?: unknown }) =>
    answer(input === undefined || input === '' ? 'chat_id_empty' : 'chat_not_found'),
};

/** A chat as a bot names it: an id, or `@username` of a public chat. */
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
  .describe('Id of the chat (of a direct chat, of the person), or `@username` of a public one');

const noMessage = { error: 'an integer' };
/** One pipe: behind a second one zod no longer tells that the parameter is required. */
export const messageId = z
  .preprocess(asNumber, z.number(noMessage).int(noMessage).min(0, noMessage).max(idMax, noMessage))
  .describe('Id of the message in its chat');

/** Ids of messages for one step: 1 to `limits.messages_batch_max`, in any order. */
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
).describe(`Ids of 1 to ${limits.messages_batch_max} messages of one chat`);

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
  `Entities in place of parse_mode, up to ${limits.entities_max}; offsets and lengths in UTF-16 code units`,
);

const unparsable = answer('keyboard_unparsable');

const button = z.looseObject(
  {
    text: z.string({ error: unparsable }),
    callback_data: z.string({ error: unparsable }).optional(),
    url: z.string({ error: unparsable }).optional(),
  },
  { error: unparsable },
);

/** Structure only; `rules/keyboard.ts` holds the limits. A reply keyboard of the client is taken and not shown. */
export const replyMarkup = optional(
  json(
    z.looseObject(
      { inline_keyboard: z.array(z.array(button, { error: unparsable }), { error: unparsable }).optional() },
      { error: unparsable },
    ),
  ),
).describe(
  `Inline keyboard, up to ${limits.keyboard_buttons_max} buttons; callback_data has 1 to ${limits.callback_data_bytes_max} bytes`,
);

export const replyParameters = optional(
  json(
    z.object(
      { message_id: messageId, allow_sending_without_reply: boolean.optional() },
      { error: 'an object with message_id' },
    ),
  ),
).describe('The message that this one answers, in the same chat');

export const allowedUpdates = optionalList(text, 'an array of strings').describe(
  'Types of updates to make; absent keeps the former list, an empty one means the usual ones',
);
