/**
 * Writes and reads the hints that announce chat actions, such as typing. A chat action is not stored, so its hint
 * contains all of its data.
 */
import type { Profile } from '../core/codec.js';

export interface ShownAction {
  readonly id: number;
  readonly action: string;
  /** The profile of the acting bot or person. Null in a direct chat, and in hints from earlier versions. */
  readonly profile: Profile | null;
}

const prefix = 'action ';

export const actionHint = (id: number, action: string, profile: Profile | null): string =>
  `${prefix}${id} ${action}${profile === null ? '' : ` ${JSON.stringify(profile)}`}`;

/** Returns null if the hint is not about a chat action. */
export function readActionHint(hint: string): ShownAction | null {
  if (!hint.startsWith(prefix)) return null;
  const [id, action = '', ...profile] = hint.slice(prefix.length).split(' ');
  return {
    id: Number(id),
    action,
    profile: profile.length === 0 ? null : (JSON.parse(profile.join(' ')) as Profile),
  };
}
