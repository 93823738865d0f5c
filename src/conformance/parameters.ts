/**
 * Generates checks of each method from its schema: unknown tokens, missing and wrong parameters, and encodings. The
 * schema also determines the answer that each invalid call must get.
 */
import { z } from 'zod';
import { ApiError } from '../errors.js';
import { methods } from '../methods/methods.gen.js';
import { type Method, parseWith } from '../server/method.js';
import { type Check, expectRefusal, type Session, show } from './check.js';
import { asText, type Encoding, encodings, type Given } from './encodings.js';

/** The part of JSON Schema that parameter schemas use. */
interface Shape {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Shape[];
  readonly items?: Shape;
  readonly minItems?: number;
  readonly properties?: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
}

/** An id that belongs to no chat, message or person. */
const nobody = 9_999_999_999_998;

const picture = 'https://example.org/picture.jpg';

/** Valid values by parameter name, for parameters whose schema does not show the required form. */
const known: Readonly<Record<string, unknown>> = {
  chat_id: -nobody,
  from_chat_id: -nobody,
  type: 'photo',
  media: picture,
  command: 'start',
  emoji_list: '👍',
};

/** Returns a value that fits the shape. The value refers to no existing chat, so an accepted call changes no chat. */
function plausible(shape: Shape, name = ''): unknown {
  if (name in known && shape.type !== 'array' && shape.type !== 'object') return known[name];
  if (shape.const !== undefined) return shape.const;
  if (shape.enum) return shape.enum[0];
  if (shape.anyOf) return plausible(shape.anyOf[0] as Shape, name);
  switch (Array.isArray(shape.type) ? shape.type[0] : shape.type) {
    case 'integer':
    case 'number':
      return 1;
    case 'boolean':
      return false;
    case 'array':
      return Array.from({ length: shape.minItems ?? 1 }, () => plausible(shape.items ?? {}, name));
    case 'object':
      return required(shape);
    default:
      return 'x';
  }
}

/** Parameters that a call needs although the method's schema marks them as optional. */
const optionalParts: Readonly<Record<string, Given>> = {
  sendAnimation: { animation: picture },
  sendAudio: { audio: picture },
  sendDocument: { document: picture },
  sendMessageDraft: { chat_id: nobody },
  sendPhoto: { photo: picture },
  sendPoll: { question: 'x', options: ['x'] },
  sendSticker: { sticker: picture },
  sendVideo: { video: picture },
  sendVoice: { voice: picture },
};

const required = ({ properties = {}, required: names = [] }: Shape): Given =>
  Object.fromEntries(names.map((name) => [name, plausible(properties[name] ?? {}, name)]));

const invalidValues: readonly unknown[] = [
  ...['abc', 'a b', '1.5', '[', '{', 'none of these', '9007199254740993', ''],
  ...[{}, [1], 1.5, true, [[]], -1],
];

/** Returns the error that the schema gives for these parameters, or null if it accepts them. */
function errorFor(schema: z.ZodType, params: Given): ApiError | null {
  try {
    parseWith(schema, params);
    return null;
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}

interface Invalid {
  readonly params: Given;
  readonly encoding: Encoding;
  readonly error: ApiError;
}

interface InvalidCalls {
  /** The smallest set of parameters that the schema accepts. */
  readonly base: Given;
  readonly missing: readonly Invalid[];
  readonly wrong: readonly Invalid[];
  /** One invalid call for each encoding. Empty if the method accepts any text. */
  readonly encoded: readonly Invalid[];
}

/** Returns the parameters as the server sees them. In every encoding except JSON, each value is a text. */
const asTexts = (params: Given): Given =>
  Object.fromEntries(Object.entries(params).map(([name, value]) => [name, asText(value)]));

/** Builds invalid calls of a method from the schema of its parameters. */
export function invalidCalls(params: z.ZodType): InvalidCalls {
  const shape = z.toJSONSchema(params, { io: 'input', unrepresentable: 'any' }) as Shape;
  const base = required(shape);
  const missing = (shape.required ?? []).flatMap((gone) => {
    const { [gone]: _, ...rest } = base;
    const error = errorFor(params, rest);
    return error === null ? [] : [{ params: rest, encoding: 'JSON' as const, error }];
  });
  const wrong: Invalid[] = [];
  const encoded: Invalid[] = [];
  for (const parameter of Object.keys(shape.properties ?? {})) {
    const invalid = (value: unknown, encoding: Encoding): Invalid[] => {
      const given = { ...base, [parameter]: value };
      const error = errorFor(params, encoding === 'JSON' ? given : asTexts(given));
      return error === null ? [] : [{ params: given, encoding, error }];
    };
    const inJson = invalidValues.flatMap((value) => invalid(value, 'JSON'));
    wrong.push(...inJson.filter(({ params: given }) => typeof given[parameter] !== 'string').slice(0, 1));
    const texts = inJson.filter(({ params: given }) => typeof given[parameter] === 'string');
    wrong.push(...texts.slice(0, 1));
    const [text] = texts;
    const everywhere = text ? encodings.flatMap((each) => invalid(text.params[parameter], each)) : [];
    if (encoded.length === 0 && everywhere.length === encodings.length) encoded.push(...everywhere);
  }
  return { base, missing, wrong, encoded };
}

async function expectRefusals(session: Session, method: string, calls: readonly Invalid[]): Promise<void> {
  for (const { params, encoding, error } of calls) {
    const answer = await session.call(method, params, { encoding });
    expectRefusal(answer, error, `${method} with ${show(params)} as ${encoding}`);
  }
}

/** Returns a token with the same bot id and a different secret. */
const otherToken = (token: string): string => {
  const [id = ''] = token.split(':');
  return `${id}:A${'x'.repeat(34)}`;
};

function checksOf(method: Method): Check[] {
  const { name } = method;
  const make = (proves: string, run: Check['run']): Check => ({
    subject: 'parameters of each method',
    proves: `${name} ${proves}`,
    needs: [],
    beside: true,
    run,
  });
  const unknown = make('refuses an unknown token', async (session) => {
    const token = otherToken(session.client.token);
    expectRefusal(await session.call(name, {}, { token }), new ApiError('unauthorized'), name);
  });
  const { params } = method;
  if (params === null) return [unknown];
  const { base, missing, wrong, encoded } = invalidCalls(params);
  const refusals = (proves: string, calls: readonly Invalid[]): Check[] =>
    calls.length === 0 ? [] : [make(proves, (session) => expectRefusals(session, name, calls))];
  const whole = { ...base, ...optionalParts[name] };
  // Does not check `sendVideoNote` with an unknown chat. The server first checks the video note, which must be an
  // upload or a file on this server.
  const isOfChat =
    name !== 'sendVideoNote' && base.chat_id === known.chat_id && method.errors.includes('chat_not_found');
  return [
    unknown,
    ...refusals('names each missing parameter', missing),
    ...refusals('refuses a wrong value of each parameter', wrong),
    ...refusals('reads parameters in every encoding', encoded),
    ...(isOfChat
      ? [make('refuses an unknown chat', (session) => session.refused(name, whole, 'chat_not_found'))]
      : []),
  ];
}

export const parameterChecks: readonly Check[] = methods.flatMap(checksOf);
