/** Builds the results of an answer to an inline query (decision 0054). */
import { z } from 'zod';
import { viewContent } from '../content/kinds.js';
import { type ErrorName, fail } from '../errors.js';
import { type MediaFile, mediaOf } from '../files/file_id.js';
import { ruleLimits as limits } from '../rules/limits.js';
import { isLongerThan } from '../rules/text.js';
import { type MethodContext, parseWith } from '../server/method.js';
import { noFiles } from '../server/params.js';
import type { Content, MediaType } from '../store/core/codec.js';
import type { InlineAnswer, InlineMessage } from '../store/inline/inline_queries.js';
import { storeLimits } from '../store/limits.js';
import {
  boolean,
  entities,
  json,
  linkPreviewParams,
  optional,
  parseMode,
  replyMarkup,
  text,
} from '../wire/schema.js';
import { captionContent, inlineKeyboardErrors, keyboard, textContent, type Writer } from './compose.js';
import { httpsUrl, takeMedia } from './media.js';
import { amount } from './send_media.js';
import {
  contactOf,
  contactParams,
  liveErrors,
  liveLocationOf,
  liveParams,
  locationOf,
  locationParams,
  venueOf,
  venueParams,
} from './send_object.js';

export const inlineResultErrors = [
  'too_many_inline_results',
  'inline_result_invalid',
  'inline_answer_too_big',
  'text_empty',
  'text_too_long',
  'caption_too_long',
  'parse_mode_unsupported',
  'entities_unparsable',
  'entities_too_long',
  ...inlineKeyboardErrors,
  'wrong_file_id',
  'file_type_mismatch',
  ...liveErrors,
] as const satisfies readonly ErrorName[];

/** A type of result that sends a file. The names of its parameters begin with `name`, for example `photo_url`. */
interface FileResult {
  readonly media: MediaType;
  readonly name: string;
  /** The MIME type of a file that is given by URL. Absent if the type of the result does not determine it. */
  readonly mime?: string;
}

const fileResults: Readonly<Record<string, FileResult>> = {
  photo: { media: 'photo', name: 'photo' },
  gif: { media: 'animation', name: 'gif', mime: 'image/gif' },
  mpeg4_gif: { media: 'animation', name: 'mpeg4', mime: 'video/mp4' },
  video: { media: 'video', name: 'video' },
  audio: { media: 'audio', name: 'audio' },
  voice: { media: 'voice', name: 'voice' },
  document: { media: 'document', name: 'document' },
};

/** The allowed values of `mime_type`, keyed by the type of the result. */
const mimeTypes: Readonly<Record<string, readonly string[]>> = {
  video: ['video/mp4', 'text/html'],
  document: ['application/pdf', 'application/zip'],
};

const fileFields = Object.fromEntries(
  Object.values(fileResults).flatMap(({ name }) => [
    [`${name}_url`, optional(text)],
    [`${name}_file_id`, optional(text)],
    ...['width', 'height', 'duration'].map((what) => [`${name}_${what}`, amount]),
  ]),
) as Record<string, z.ZodType<string | number | undefined>>;

const result = z.looseObject(
  {
    type: text,
    id: text,
    title: optional(text),
    description: optional(text),
    url: optional(text),
    thumbnail_url: optional(text),
    thumbnail_width: amount,
    thumbnail_height: amount,
    caption: optional(text),
    parse_mode: parseMode,
    caption_entities: entities,
    show_caption_above_media: optional(boolean),
    mime_type: optional(text),
    performer: optional(text),
    reply_markup: replyMarkup,
    input_message_content: optional(z.looseObject({}, { error: 'an object' })).describe(
      'Content of the message: a text, a location, a venue or a contact',
    ),
    ...fileFields,
  },
  { error: 'an array of inline query results' },
);
type Result = z.output<typeof result>;

export const inlineResults = json(z.array(result, { error: 'an array of inline query results' }), {
  valuesMax: limits.list_values_max,
  items: result,
}).describe(
  `Up to ${limits.inline_results_max} results: article, photo, gif, mpeg4_gif, video, audio, voice, document, location, venue or contact`,
);

const invalid = (reason: string): never => fail('inline_result_invalid', { reason });

const inlineLocation = { ...locationParams, ...liveParams };

const textMessage = z.object({ message_text: text, parse_mode: parseMode, entities, ...linkPreviewParams });

/**
 * Builds the location, venue or contact that a result or its message content describes. The period of a live location
 * starts only when a person sends the result.
 */
function objectIn(given: Readonly<Record<string, unknown>>, kind: 'location' | 'venue' | 'contact'): Content {
  if (kind === 'contact') return { object: contactOf(parseWith(z.object(contactParams), given)) };
  if (kind === 'venue') return { object: venueOf(parseWith(z.object(venueParams), given)) };
  const place = parseWith(z.object(inlineLocation), given);
  return { object: place.live_period ? liveLocationOf(place, 0) : locationOf(place) };
}

/** Builds the content of the field `input_message_content`, which is sent instead of the result itself. */
function messageContent(
  { store }: MethodContext,
  writer: Writer,
  given: Readonly<Record<string, unknown>>,
): Content | Promise<Content> {
  if (given.message_text !== undefined) {
    const { message_text, ...how } = parseWith(textMessage, given);
    return textContent(store, writer, { text: message_text, ...how });
  }
  if (given.phone_number !== undefined) return objectIn(given, 'contact');
  if (given.address !== undefined) return objectIn(given, 'venue');
  if (given.latitude !== undefined) return objectIn(given, 'location');
  return invalid('unsupported type of input message content');
}

/** Resolves the file of a result: an HTTPS URL or a `file_id`. A result cannot upload a file. */
async function fileOf(context: MethodContext, { media, name, mime }: FileResult, given: Result) {
  const fields = given as Readonly<Record<string, unknown>>;
  const field = (what: string) => fields[`${name}_${what}`];
  const value = (field('file_id') ?? field('url')) as string | undefined;
  if (value === undefined) return fail('parameter_required', { name: `${name}_url` });
  const said = {
    width: field('width') as number | undefined,
    height: field('height') as number | undefined,
    duration: field('duration') as number | undefined,
    performer: given.performer,
    title: media === 'audio' ? given.title : undefined,
  };
  const { file } = await takeMedia({ ...context, uploads: noFiles }, media, name, value, said);
  // If the type of the result does not determine the MIME type, the field `mime_type` gives it.
  const known = mime ?? (Object.hasOwn(mimeTypes, given.type) ? given.mime_type : undefined);
  const made: MediaFile = file.url === undefined || known === undefined ? file : { ...file, mime: known };
  return mediaOf(context.files, made);
}

interface Built {
  readonly id: string;
  readonly shown: Readonly<Record<string, unknown>>;
  readonly message: InlineMessage;
}

/** Returns the displayed title of a result. A contact shows a name instead of a title. */
function titleOf({ type, title, ...given }: Result): string | undefined {
  if (type !== 'contact') return title;
  const { first_name, last_name } = given as { first_name?: string; last_name?: string };
  return [first_name, last_name].filter(Boolean).join(' ');
}

/** Checks and returns the fields of a result that people see in the list of results. */
function shownOf(given: Result): Record<string, unknown> {
  const { type, url, thumbnail_url, thumbnail_width, thumbnail_height, address, phone_number } = given;
  const title = titleOf(given);
  const description = given.description ?? address ?? phone_number;
  for (const words of [title, description])
    if (typeof words === 'string' && isLongerThan(words, limits.inline_text_length_max))
      invalid(`titles and descriptions have up to ${limits.inline_text_length_max} characters`);
  if (url !== undefined && !(/^https?:/i.test(url) && URL.canParse(url))) invalid('URL is invalid');
  const fields = {
    ...{ id: given.id, type, title, description, url },
    ...(thumbnail_url === undefined ? {} : { thumbnail_url: httpsUrl(thumbnail_url) }),
    ...{ thumbnail_width, thumbnail_height },
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function checkType(given: Result): void {
  const { type, mime_type, input_message_content } = given;
  const isFile = Object.hasOwn(fileResults, type);
  if (!isFile && !['article', 'location', 'venue', 'contact'].includes(type))
    invalid(
      `type "${type.slice(0, limits.inline_text_length_max)}" is unsupported for the inline query result`,
    );
  if (type === 'article' && given.title === undefined) fail('parameter_required', { name: 'title' });
  const needsContent = type === 'article' || mime_type === 'text/html';
  if (needsContent && input_message_content === undefined)
    fail('parameter_required', { name: 'input_message_content' });
  const allowed = given[`${type}_url`] === undefined ? undefined : mimeTypes[type];
  if (allowed && !allowed.includes(mime_type ?? '')) invalid('MIME type is unsupported');
}

async function build(context: MethodContext, given: Result): Promise<Built> {
  const { id, type, input_message_content: replacing } = given;
  const bytes = Buffer.byteLength(id);
  if (bytes < 1 || bytes > limits.inline_result_id_bytes_max)
    invalid(`ID must have 1 to ${limits.inline_result_id_bytes_max} bytes`);
  checkType(given);
  const shown = shownOf(given);
  const markup = keyboard(given.reply_markup);
  const writer: Writer = { id: context.bot.id, isBot: true, chat: null };
  const file = Object.hasOwn(fileResults, type) ? fileResults[type] : undefined;
  // A video result with this MIME type is a web page and cannot be sent as a file.
  const media = file && given.mime_type !== 'text/html' ? await fileOf(context, file, given) : undefined;
  const ownContent = async (): Promise<Content> =>
    media === undefined
      ? objectIn(given, type as 'location')
      : { ...(await captionContent(context.store, writer, given)), media };
  const content = await (replacing === undefined ? ownContent() : messageContent(context, writer, replacing));
  const view = media === undefined ? {} : viewContent({ media }, true, context.store.time);
  return { id, shown: { ...shown, ...view }, message: { content, markup } };
}

/** Builds all results of an answer. Errors: `inlineResultErrors`, `parameter_required`, `parameter_wrong`. */
export async function buildInlineResults(
  context: MethodContext,
  given: readonly Result[],
): Promise<{ readonly shown: InlineAnswer['list']['results']; readonly messages: InlineAnswer['messages'] }> {
  if (given.length > limits.inline_results_max) fail('too_many_inline_results');
  // Checks the total size of the texts with markup before parsing them, because parsing is slow.
  const words = ({ caption = '', input_message_content: said }: Result) =>
    caption.length + (typeof said?.message_text === 'string' ? said.message_text.length : 0);
  if (given.reduce((sum, each) => sum + words(each), 0) > storeLimits.inline_answer_bytes_max)
    fail('inline_answer_too_big');
  const built = await Promise.all(given.map((each) => build(context, each)));
  const messages = new Map(built.map(({ id, message }) => [id, message]));
  if (messages.size < built.length) invalid('ID is used twice');
  return { shown: built.map(({ shown }) => shown), messages };
}
