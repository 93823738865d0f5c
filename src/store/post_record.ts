/** The record of a post as scripts answer it: a list of names and values. */
import { type ChatRef, sharedChat } from './keys.js';

export interface PostReaction {
  readonly emoji: string;
  readonly count: number;
  /** external ids of the latest, newest first */
  readonly users: readonly string[];
}

const uuidBytes = 16;

/** A UUID of its bytes. */
export const uuidText = (bytes: Buffer): string =>
  bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

function uuids(list: Buffer): string[] {
  const found: string[] = [];
  for (let at = 0; at < list.length; at += uuidBytes) found.push(uuidText(list.subarray(at, at + uuidBytes)));
  return found;
}

/** Where a post stands, and its reactions by count, then by first use (behaviour §8). */
export function readReactions(raw: unknown): {
  readonly chat: ChatRef;
  readonly messageId: number;
  readonly reactions: readonly PostReaction[];
} {
  const list = raw as Buffer[];
  const fields = new Map<string, Buffer>();
  for (let i = 0; i < list.length; i += 2) fields.set(String(list[i]), list[i + 1] as Buffer);
  const number = (name: string) => Number(fields.get(name) ?? 0);
  const emoji = [...fields.keys()].flatMap((name) => (name.startsWith('n:') ? [name.slice(2)] : []));
  const found = emoji.map((each) => ({
    first: number(`f:${each}`),
    reaction: {
      emoji: each,
      count: number(`n:${each}`),
      users: uuids(fields.get(`l:${each}`) ?? Buffer.alloc(0)),
    },
  }));
  found.sort((a, b) => b.reaction.count - a.reaction.count || a.first - b.first);
  return {
    chat: sharedChat(number('c')),
    messageId: number('m'),
    reactions: found.map(({ reaction }) => reaction),
  };
}
