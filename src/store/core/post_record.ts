/** Parses a post's record as scripts return it: a list of alternating names and values. */

import { numberOf } from '../../redis/scripts/script_reply.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { type ChatRef, sharedChat } from './keys.js';

export interface EmojiCount {
  readonly emoji: string;
  readonly count: number;
  /** The version of the change that used the emoji first. */
  readonly first: number;
}

/** Compares emoji by count, then by first use (behaviour §8). */
export const byUse = (a: EmojiCount, b: EmojiCount): number => b.count - a.count || a.first - b.first;

export interface PostReaction extends EmojiCount {
  /**
   * The external ids of the people who used the emoji most recently, newest first. Their number is limited by the
   * parser's argument `listed`.
   */
  readonly users: readonly string[];
  readonly listed: number;
}

const uuidBytes = 16;
const uuidLength = 36;

export const uuidText = (bytes: Buffer): string =>
  bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

const digits = Buffer.from(Array.from({ length: 256 }, (_, i) => i.toString(16).padStart(2, '0')).join(''));
/** Maps each byte to the index of its two digits in the text of a UUID. */
const places = Array.from(
  { length: uuidBytes },
  (_, i) => 2 * i + [4, 6, 8, 10].filter((n) => n <= i).length,
);
const written = Buffer.alloc(limits.reactors_listed_max * uuidLength, '-');

/**
 * Formats the first `max` UUIDs of a list. Writes all digits into one buffer first, because formatting each UUID alone
 * would take most of the time of showing a popular post.
 */
function uuids(list: Buffer, max: number): string[] {
  const count = Math.min(Math.floor(list.length / uuidBytes), max);
  for (let i = 0; i < count; i++) {
    for (let n = 0; n < uuidBytes; n++) {
      const digit = (list[i * uuidBytes + n] as number) * 2;
      const at = i * uuidLength + (places[n] as number);
      written[at] = digits[digit] as number;
      written[at + 1] = digits[digit + 1] as number;
    }
  }
  const text = written.toString('latin1', 0, count * uuidLength);
  return Array.from({ length: count }, (_, i) => text.slice(i * uuidLength, (i + 1) * uuidLength));
}

const nothing = Buffer.alloc(0);

/** Caches the text form of lists that rarely change. When the cache is full, drops the oldest entry. */
const spelled = new Map<string, readonly string[]>();
const spelledMax = 512;

function spelledOnce(list: Buffer): readonly string[] {
  const key = list.toString('latin1');
  const known = spelled.get(key);
  if (known) return known;
  const users = uuids(list, limits.reactors_listed_max);
  if (spelled.size >= spelledMax) spelled.delete(spelled.keys().next().value as string);
  spelled.set(key, users);
  return users;
}

interface Lists {
  count: number | undefined;
  first: number;
  latest: Buffer;
  older: Buffer;
}

/**
 * Decodes a field about an emoji. The prefix is `n:` for the count, `f:` for the first use, `l:` for the latest users,
 * or `o:` for earlier users.
 */
function readField(found: Map<string, Lists>, name: string, value: Buffer): void {
  const emoji = name.slice(2);
  let lists = found.get(emoji);
  if (lists === undefined) {
    lists = { count: undefined, first: 0, latest: nothing, older: nothing };
    found.set(emoji, lists);
  }
  switch (name[0]) {
    case 'n':
      lists.count = numberOf(value);
      break;
    case 'f':
      lists.first = numberOf(value);
      break;
    case 'l':
      lists.latest = value;
      break;
    case 'o':
      lists.older = value;
      break;
  }
}

function usersOf(latest: Buffer, older: Buffer, listed: number): readonly string[] {
  const users = uuids(latest, listed);
  if (older.length === 0 || users.length === listed) return users;
  return [...users, ...spelledOnce(older)].slice(0, listed);
}

/** Parses a post's record. Sorts the emoji by use. `listed` is at most limits.reactors_listed_max. */
export function readReactions(
  raw: unknown,
  listed: number,
): {
  readonly chat: ChatRef;
  readonly messageId: number;
  readonly version: number;
  readonly reactions: readonly PostReaction[];
} {
  const pairs = raw as Buffer[];
  const place = { chat: 0, messageId: 0, version: 0 };
  const found = new Map<string, Lists>();
  for (let i = 0; i < pairs.length; i += 2) {
    const name = (pairs[i] as Buffer).toString();
    const value = pairs[i + 1] as Buffer;
    if (name === 'c') place.chat = numberOf(value);
    else if (name === 'm') place.messageId = numberOf(value);
    else if (name === 'v') place.version = numberOf(value);
    else if (name[1] === ':') readField(found, name, value);
  }
  const reactions: PostReaction[] = [];
  for (const [emoji, { count, first, latest, older }] of found) {
    if (count !== undefined)
      reactions.push({ emoji, count, first, users: usersOf(latest, older, listed), listed });
  }
  return {
    chat: sharedChat(place.chat),
    messageId: place.messageId,
    version: place.version,
    reactions: reactions.length > 1 ? reactions.sort(byUse) : reactions,
  };
}
