/**
 * Records as Redis and Postgres keep them. A message record is one msgpack array of small header fields, which scripts
 * read and write, followed by segments that scripts only move: content, keyboard, and what never changes.
 */
import { Packr } from 'msgpackr';

const packr = new Packr({
  useRecords: false,
  int64AsType: 'number',
  mapsAsObjects: true,
  encodeUndefinedAsNil: true,
});

export const pack = (value: unknown): Buffer => packr.pack(value);
export const unpack = <T>(bytes: Buffer): T => packr.unpack(bytes) as T;

/** A person, a bot or a chat as copies of it travel: short field names, absent ones left out. */
export interface Profile {
  readonly id: number;
  readonly bot?: 1;
  /** first name, or the title of a group or channel */
  readonly n: string;
  /** last name */
  readonly l?: string;
  /** username */
  readonly u?: string;
  /** language code */
  readonly g?: string;
  /** external id of a person */
  readonly x?: string;
  /** type of a chat that is not direct */
  readonly t?: 'group' | 'channel';
  /** members of a chat that is not direct */
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
  readonly [key: string]: unknown;
}

export interface InlineKeyboard {
  readonly inline_keyboard: readonly (readonly InlineButton[])[];
}

/** What an edit of the text replaces. */
export interface Content {
  readonly text?: string;
  readonly entities?: readonly Entity[];
}

/** What never changes after the message was made. */
export interface Origin {
  /** the sender, in groups and channels; in a direct chat it follows from the sender's id */
  readonly from?: Profile;
  /** message that this one answers */
  readonly reply?: number;
  /** what a service message tells */
  readonly service?: Readonly<Record<string, unknown>>;
}

export const messageKinds = { deleted: 0, text: 1, service: 2 } as const;
export type MessageKind = (typeof messageKinds)[keyof typeof messageKinds];

/** Bits of the header's flags. */
export const messageFlags = { protected: 1, silent: 2, forwarded: 4 } as const;

/** The header array. Lua reads it by position: see lua/lib/message.lua. */
export interface MessageHeader {
  readonly version: number;
  /** Unix time in seconds */
  readonly date: number;
  /** Unix time in milliseconds of the last edit, 0 for none */
  readonly editedAt: number;
  readonly sender: number;
  readonly kind: number;
  readonly flags: number;
}

export interface MessageRecord extends MessageHeader {
  readonly content: Content;
  readonly markup: InlineKeyboard | null;
  readonly origin: Origin;
}

const headerLength = 9;
export const recordFormat = 1;

const noBytes = Buffer.alloc(0);
const noOrigin = pack({});

function isEmpty(object: object): boolean {
  for (const _ in object) return false;
  return true;
}

/** The parts of a new message that the script does not make: everything behind version and date. */
export function packMessageTail(message: Omit<MessageRecord, 'version' | 'date' | 'editedAt'>): Buffer {
  const content = pack(message.content);
  const markup = packMarkup(message.markup);
  const origin = isEmpty(message.origin) ? noOrigin : pack(message.origin);
  // One array of the six numbers is packed faster than six numbers; its lead byte is left out.
  const numbers = pack([0, message.sender, message.kind, message.flags, content.length, markup.length]);
  return Buffer.concat([numbers.subarray(1), content, markup, origin]);
}

/** An absent keyboard takes no byte. */
export function packMarkup(markup: InlineKeyboard | null): Buffer {
  return markup === null ? noBytes : pack(markup);
}

/** A whole record, as a script would have made it. */
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
  ]);
}

type RawHeader = [number, number, number, number, number, number, number, number, number];

/** Reads a record. Throws for a format that this program does not know. */
export function unpackMessage(bytes: Buffer): MessageRecord {
  const [format, version, date, editedAt, sender, kind, flags, contentLength, markupLength] =
    unpackHeader(bytes);
  if (format !== recordFormat) throw new Error(`unknown message record format ${format}`);
  const start = headerSize(bytes);
  const markupStart = start + contentLength;
  const originStart = markupStart + markupLength;
  return {
    version,
    date,
    editedAt,
    sender,
    kind,
    flags,
    content: contentLength === 0 ? {} : unpack<Content>(bytes.subarray(start, markupStart)),
    markup: markupLength === 0 ? null : unpack<InlineKeyboard>(bytes.subarray(markupStart, originStart)),
    origin: originStart >= bytes.length ? {} : unpack<Origin>(bytes.subarray(originStart)),
  };
}

/** Bytes of a msgpack integer at `at`: the header holds nothing else. */
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

/** The version of a record, without reading the rest. */
export function messageVersion(bytes: Buffer): number {
  return unpackHeader(bytes)[1];
}
