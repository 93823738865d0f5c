/** Finds the members of a group whose names begin with the letters that follow a typed `@`. */
import type { Message, User } from '../types.js';
import type { Change } from './formats.js';
import { writeMarks } from './marks.js';

const shown_max = 20;

const nameOf = ({ first_name, last_name }: User): string => [first_name, last_name].filter(Boolean).join(' ');

/**
 * Returns the members whose username begins with `typed`, or in whose name a word begins with `typed`. Members who
 * wrote most recently come first. `messages` are the loaded messages, oldest first.
 */
export function mentionable(
  typed: string,
  members: readonly User[],
  messages: readonly Message[],
  own: number,
): readonly User[] {
  const wanted = typed.toLocaleLowerCase();
  const begins = (word: string) => word.toLocaleLowerCase().startsWith(wanted);
  const byId = new Map<number, User>();
  for (const { from } of messages.toReversed()) if (from) byId.set(from.id, from);
  for (const user of members) byId.set(user.id, user);
  return [...byId.values()]
    .filter(
      (user) => user.id !== own && (begins(user.username ?? '') || nameOf(user).split(/\s+/).some(begins)),
    )
    .slice(0, shown_max);
}

/**
 * Returns the change that completes the name before the caret. If the person has no username, mentions the person by
 * id.
 */
export function mentionChange(user: User, typed: string, caret: number): Change {
  const name = nameOf(user);
  const entity = { type: 'text_mention', offset: 0, length: name.length, user } as const;
  const mention = user.username ? `@${user.username}` : writeMarks(name, [entity]);
  const from = caret - typed.length - 1;
  const end = from + mention.length + 1;
  return { from, to: caret, insert: `${mention} `, selection: [end, end] };
}
