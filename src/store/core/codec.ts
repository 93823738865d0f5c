/**
 * Encodes records for Redis and Postgres. A message record starts with a header: a msgpack array of small fields that
 * scripts read and write. Three segments follow: content, keyboard and constant fields. Scripts only copy these
 * segments. In the record of a channel message, the script adds the post id at the end.
 */
import { createHash } from 'node:crypto';
import { Packr } from 'msgpackr';
import { fail } from '../../errors.js';
import type { ReplyKeyboard } from '../../rules/keyboard.js';
import { ruleLimits } from '../../rules/limits.js';
import { storeLimits as limits } from '../limits.js';

const packr = new Packr({
  useRecords: false,
  int64AsType: 'number',
  mapsAsObjects: true,
  encodeUndefinedAsNil: true,
});

export const pack = (value: unknown): Buffer => packr.pack(value);
export const unpack = <T>(bytes: Buffer): T => packr.unpack(bytes) as T;

/** A profile inside a record. Field names are short, and absent fields are omitted. */
export interface Profile {
  readonly id: number;
  readonly bot?: 1;
  /** The first name of a person or bot, or the title of a group or channel. */
  readonly n: string;
  readonly l?: string;
  readonly u?: string;
  readonly g?: string;
  readonly x?: string;
  readonly t?: 'group' | 'channel' | 'person';
  /** Only for a chat of type `person`: its two people. */
  readonly pair?: readonly [Profile, Profile];
  /** The number of members of a group or channel. */
  readonly m?: number;
}

export interface Entity {
  readonly type: string;
  readonly offset: number;
  readonly length: number;
  readonly [key: string]: unknown;
}

export interface InlineButton {
  readonly text: string;
  readonly callback_data?: string;
  readonly url?: string;
  readonly login_url?: { readonly url: string };
  readonly web_app?: { readonly url: string };
  readonly [key: string]: unknown;
}

export interface InlineKeyboard {
  readonly inline_keyboard: readonly (readonly InlineButton[])[];
}

/** The media types. A file id contains the index of its type, so new types must be appended. */
export const mediaTypes = [
  'photo',
  'video',
  'audio',
  'document',
  'animation',
  'voice',
  'video_note',
  'sticker',
] as const;
export type MediaType = (typeof mediaTypes)[number];

/** A file. For media stored by URL, unknown properties are absent. */
export interface Media {
  readonly type: MediaType;
  readonly id: string;
  /** The `file_unique_id`. Equal files have the same value. It cannot be used to send or download a file. */
  readonly unique: string;
  /** The URL if the media were sent as a URL. Absent if they were uploaded. */
  readonly url?: string;
  /** In bytes. */
  readonly size?: number;
  readonly mime?: string;
  readonly name?: string;
  /** In pixels. */
  readonly width?: number;
  readonly height?: number;
  /** In seconds. */
  readonly duration?: number;
  readonly title?: string;
  readonly performer?: string;
  readonly spoiler?: true;
  /** For a sticker: its emoji, and the name of its set. */
  readonly emoji?: string;
  readonly set?: string;
  readonly thumb?: Media;
}

/** Content that is neither text nor a file. `src/content` defines the kinds. */
export interface ContentObject {
  readonly type: string;
  /**
   * For a live location: its period in seconds, and its end as Unix time in seconds. The end is 0 if the bot stopped
   * the location. Both values are packed after the object, because scripts read them.
   */
  readonly live?: readonly [number, number];
}

/** The link preview options, named as in the wire format. */
export interface LinkPreviewOptions {
  readonly is_disabled?: true;
  /** The URL of the page whose preview is shown. If absent, the preview is of the first link in the text. */
  readonly url?: string;
  readonly prefer_small_media?: true;
  readonly prefer_large_media?: true;
  readonly show_above_text?: true;
}

/**
 * The part of a message that an edit replaces: a text, or media with its caption. A video note, a sticker and an object
 * have no caption.
 */
export interface Content {
  readonly text?: string;
  readonly entities?: readonly Entity[];
  readonly above?: true;
  /** The link preview options that are set. Only text messages have them. */
  readonly preview?: LinkPreviewOptions;
  readonly media?: Media;
  readonly object?: ContentObject;
}

export interface ForwardOrigin {
  /** The person or bot who wrote the original message. Absent if a channel published the message. */
  readonly from?: Profile;
  /** The channel in which the original message was posted. `message` is its id there. */
  readonly chat?: Profile;
  readonly message?: number;
  /** The Unix time in seconds at which the original message was sent. */
  readonly date: number;
}

export interface Service {
  /** The id of the pinned message. The update shows that message as it was when the update was created. */
  readonly pinned?: number;
  readonly new_chat_members?: readonly Profile[];
  readonly left_chat_member?: Profile;
  readonly [key: string]: unknown;
}

/** The fields of a message that never change. */
export interface Origin {
  /** The sender's profile. Absent in direct chats, where the sender's id is enough. */
  readonly from?: Profile;
  readonly reply?: number;
  readonly forward?: ForwardOrigin;
  readonly group?: string;
  /** For a message that a person sent as an inline result: the bot that provided the result. */
  readonly via?: Profile;
  readonly keyboard?: ReplyKeyboard;
  readonly service?: Service;
}

export const messageKinds = { deleted: 0, text: 1, service: 2, media: 3, object: 4 } as const;
export type MessageKind = (typeof messageKinds)[keyof typeof messageKinds];

export const messageFlags = { protected: 1, silent: 2, forwarded: 4, inline: 8 } as const;

/** The header array. Lua reads the fields by their position (see lua/lib/message.lua). */
export interface MessageHeader {
  readonly version: number;
  /** Unix time in seconds. */
  readonly date: number;
  /** Unix time in milliseconds, or 0 if the message was never edited. */
  readonly editedAt: number;
  readonly sender: number;
  readonly kind: number;
  readonly flags: number;
}

export interface MessageRecord extends MessageHeader {
  readonly content: Content;
  readonly markup: InlineKeyboard | null;
  readonly origin: Origin;
  /** The post id of a channel message, or 0 for other messages. */
  readonly post: number;
}

const headerLength = 9;
const kindField = 5;
export const recordFormat = 1;

const noBytes = Buffer.alloc(0);
const noOrigin = pack({});

function isEmpty(object: object): boolean {
  for (const _ in object) return false;
  return true;
}

const wordless: readonly string[] = ['video_note', 'sticker'] satisfies readonly MediaType[];

/**
 * Returns the kind of a message with this content. Video notes and stickers count as objects, because they have no
 * caption either.
 */
export const kindOfContent = ({ media, object }: Content): MessageKind => {
  if (media !== undefined && !wordless.includes(media.type)) return messageKinds.media;
  return (media ?? object) === undefined ? messageKinds.text : messageKinds.object;
};

/**
 * Packs the text first and the media after it, so that a script can replace a caption without unpacking the media.
 * Throws `entities_too_long` if the result is too large. Only the URLs of links can make it too large.
 */
export function packContent({ media, object, ...words }: Content): Buffer {
  const parts: unknown[] = media === undefined ? [words] : [words, media];
  if (media === undefined && object !== undefined) {
    const { live, ...fixed } = object;
    parts.push(fixed);
    if (live !== undefined) parts.push(live);
  }
  const bytes = parts.length === 1 ? pack(words) : Buffer.concat(parts.map(pack));
  return bytes.length > limits.content_bytes_max ? fail('entities_too_long') : bytes;
}

function unpackContent(bytes: Buffer, kind: number): Content {
  if (bytes.length === 0) return {};
  if (kind !== messageKinds.media && kind !== messageKinds.object) return unpack<Content>(bytes);
  const [words, behind, live] = packr.unpackMultiple(bytes) as [
    Content,
    Media | ContentObject,
    ContentObject['live']?,
  ];
  const isFile = kind === messageKinds.media || wordless.includes(behind.type);
  if (isFile) return { ...words, media: behind as Media };
  return { ...words, object: live === undefined ? behind : { ...behind, live } };
}

/** Packs the part of a record that the caller of a script provides: all fields after version and date. */
export function packMessageTail(message: Omit<MessageRecord, 'version' | 'date' | 'editedAt' | 'post'>) {
  const content = packContent(message.content);
  const markup = packMarkup(message.markup);
  const origin = isEmpty(message.origin) ? noOrigin : pack(message.origin);
  // Packs the six numbers together as an array and drops the array's first byte, because this is faster than packing
  // each number.
  const numbers = pack([0, message.sender, message.kind, message.flags, content.length, markup.length]);
  return Buffer.concat([numbers.subarray(1), content, markup, origin]);
}

/** Packs a keyboard. An absent keyboard takes no bytes. Error: `keyboard_too_large`. */
export function packMarkup(markup: InlineKeyboard | null): Buffer {
  if (markup === null) return noBytes;
  const bytes = pack(markup);
  return bytes.length > ruleLimits.keyboard_bytes_max ? fail('keyboard_too_large') : bytes;
}

/** Packs a complete record, in the same form as records that scripts create. */
export function packMessage(message: MessageRecord): Buffer {
  const tail = packMessageTail(message);
  const edited = pack(message.editedAt);
  return Buffer.concat([
    Buffer.from([0x90 | headerLength]),
    pack(recordFormat),
    pack(message.version),
    pack(message.date),
    edited,
    tail.subarray(1),
    message.post === 0 ? noBytes : pack(message.post),
  ]);
}

type RawHeader = [number, number, number, number, number, number, number, number, number];

/** Unpacks a record. Throws for an unknown format. */
export function unpackMessage(bytes: Buffer): MessageRecord {
  const [format, version, date, editedAt, sender, kind, flags, contentLength, markupLength] =
    unpackHeader(bytes);
  if (format !== recordFormat) throw new Error(`unknown message record format ${format}`);
  const start = headerSize(bytes);
  const markupStart = start + contentLength;
  const originStart = markupStart + markupLength;
  const [origin = {}, post = 0] = (
    originStart >= bytes.length ? [] : packr.unpackMultiple(bytes.subarray(originStart))
  ) as [Origin?, number?];
  return {
    version,
    date,
    editedAt,
    sender,
    kind,
    flags,
    content: unpackContent(bytes.subarray(start, markupStart), kind),
    markup: markupLength === 0 ? null : unpack<InlineKeyboard>(bytes.subarray(markupStart, originStart)),
    origin,
    post,
  };
}

/** Returns the size of the msgpack number at position `at`. The header of a record contains only numbers. */
function intSize(bytes: Buffer, at: number): number {
  const lead = bytes[at] as number;
  if (lead < 0x80 || lead >= 0xe0) return 1;
  if (lead === 0xcc || lead === 0xd0) return 2;
  if (lead === 0xcd || lead === 0xd1) return 3;
  if (lead === 0xce || lead === 0xd2 || lead === 0xca) return 5;
  return 9;
}

function headerSize(bytes: Buffer): number {
  let at = 1;
  for (let i = 0; i < headerLength; i++) at += intSize(bytes, at);
  return at;
}

function unpackHeader(bytes: Buffer): RawHeader {
  if (bytes[0] !== (0x90 | headerLength)) throw new Error('not a message record');
  return unpack<RawHeader>(bytes.subarray(0, headerSize(bytes)));
}

export function messageVersion(bytes: Buffer): number {
  return unpackHeader(bytes)[1];
}

export function messageHeader(bytes: Buffer): MessageHeader {
  const [, version, date, editedAt, sender, kind, flags] = unpackHeader(bytes);
  return { version, date, editedAt, sender, kind, flags };
}

/** Returns when a message was sent, in seconds. `bytes` may contain only the header. */
export function messageDate(bytes: Buffer): number {
  return unpackHeader(bytes)[2];
}

/** Returns whether the record is a tombstone, which replaces a deleted message. */
export function isTombstone(bytes: Buffer): boolean {
  let at = 1;
  for (let i = 0; i < kindField; i++) at += intSize(bytes, at);
  return bytes[0] === (0x90 | headerLength) && bytes[at] === messageKinds.deleted;
}

/**
 * Returns the day on which a message was sent, in days since 1970 in UTC, below 2^16. Returns 0 for bytes that are not
 * a record, which is the case if the date is not encoded as a 32-bit integer.
 */
export function messageDay(bytes: Buffer): number {
  const at = 2 + intSize(bytes, 2);
  const lead = bytes[at];
  const isDate = (lead === 0xce || lead === 0xd2) && bytes.length >= at + 5;
  return isDate ? Math.floor(bytes.readUInt32BE(at + 1) / 86_400) : 0;
}

/** Returns the number that identifies an emoji in Postgres: 52 bits of a digest, computed as in the scripts. */
export const emojiColumn = (emoji: string): number =>
  Number.parseInt(createHash('sha1').update(emoji).digest('hex').slice(0, 13), 16);
