/** Builds people, bots and chats in the wire format. */
import type { Profile } from '../store/core/codec.js';
import type { User } from '../store/core/control.js';

export interface UserView {
  readonly id: number;
  readonly is_bot: boolean;
  readonly first_name: string;
  readonly last_name?: string;
  readonly username?: string;
  readonly language_code?: string;
}

interface SessionView {
  readonly id: number;
  readonly agent: string;
  /** Unix time in seconds. */
  readonly created_at: number;
  readonly last_used_on: string | null;
  readonly is_current: boolean;
}

interface UserTokenView {
  readonly id: number;
  readonly name: string;
  /** Unix time in seconds. */
  readonly created_at: number;
}

export function viewUser(profile: Profile): UserView {
  const view: { -readonly [K in keyof UserView]: UserView[K] } = {
    id: profile.id,
    is_bot: profile.bot === 1,
    first_name: profile.n,
  };
  if (profile.l !== undefined) view.last_name = profile.l;
  if (profile.u !== undefined) view.username = profile.u;
  if (profile.g !== undefined) view.language_code = profile.g;
  return view;
}

/** Returns a user for viewers who may not share a chat with the user. Omits the language and the external id. */
export function viewStranger(profile: Profile): UserView {
  const { language_code: _, ...view } = viewUser(profile);
  return view;
}

/** Returns a user with the external id, for the application API (behaviour §11). */
export function viewPerson(profile: Profile): UserView & { readonly external_id?: string } {
  const view: UserView & { external_id?: string } = viewStranger(profile);
  if (profile.x !== undefined) view.external_id = profile.x;
  return view;
}

/** Returns the calling user with the language, which nobody else may see. */
export const viewSelf = (profile: Profile): UserView & { readonly external_id?: string } => ({
  ...viewUser(profile),
  ...viewPerson(profile),
});

type Policies = Pick<User, 'addToGroups' | 'startChats'>;

/** Returns the calling user with the language and the settings. */
export const viewCaller = (profile: Profile, { addToGroups, startChats }: Policies) => ({
  ...viewSelf(profile),
  add_to_groups: addToGroups,
  start_chats: startChats,
});

const other = ([first, second]: readonly [Profile, Profile], person: number): Profile =>
  first.id === person ? second : first;

/** Builds a chat of two people. Its name is the name of the other person, whose profile is the second argument. */
function viewPersonChat(id: number, { id: user_id, n, l, u }: Profile): Readonly<Record<string, unknown>> {
  return {
    id,
    type: 'person',
    user_id,
    first_name: n,
    ...(l === undefined ? {} : { last_name: l }),
    ...(u === undefined ? {} : { username: u }),
  };
}

/** In a chat of two people, returns the person who is not `person`. Returns null for any other chat. */
export const otherPerson = ({ pair }: Profile, person: number): Profile | null =>
  pair === undefined ? null : other(pair, person);

/**
 * Returns the chat of a message. In a direct chat, `profile` describes the other participant. `person` is the viewer's
 * id in the application API.
 */
export function viewChat(profile: Profile, person = 0): Readonly<Record<string, unknown>> {
  if (profile.pair !== undefined) return viewPersonChat(profile.id, other(profile.pair, person));
  const username = profile.u === undefined ? {} : { username: profile.u };
  if (profile.t !== undefined) return { id: profile.id, type: profile.t, title: profile.n, ...username };
  return {
    id: profile.id,
    type: 'private',
    first_name: profile.n,
    ...(profile.l === undefined ? {} : { last_name: profile.l }),
    ...username,
  };
}

export const viewUserToken = (token: UserTokenView & { readonly last_used_on: string | null }) => ({
  id: token.id,
  name: token.name,
  created_at: token.created_at,
  ...(token.last_used_on === null ? {} : { last_used_on: token.last_used_on }),
});

export const viewSession = ({ id, agent, created_at, last_used_on, is_current }: SessionView) => ({
  id,
  agent,
  created_at,
  ...(last_used_on === null ? {} : { last_used_on }),
  ...(is_current ? { is_current } : {}),
});
