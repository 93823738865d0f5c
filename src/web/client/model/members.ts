/** Loads the members of a group for mentions. */
import { get } from '../api.js';
import type { ChatMember, Page, User } from '../types.js';

/** The maximum number of members that are loaded. In a larger group, mentions also find people who wrote recently. */
const members_max = 500;
const page_size = 100;
const groups_max = 20;
const age_ms_max = 60_000;

interface Loaded {
  readonly at: number;
  readonly members: Promise<readonly User[]>;
}

/** The members of those groups in which the person typed a mention most recently. */
const loaded = new Map<number, Loaded>();

async function read(chat: number): Promise<readonly User[]> {
  const found: User[] = [];
  for (let cursor = ''; ; ) {
    const path = `/api/chats/${chat}/members?limit=${page_size}${cursor}`;
    const { items, next_cursor } = await get<Page<ChatMember>>(path);
    for (const { user } of items) if (user) found.push(user);
    if (next_cursor === undefined || found.length >= members_max) return found;
    cursor = `&cursor=${next_cursor}`;
  }
}

/** Loads up to `members_max` members of a group, at most once a minute. */
export function membersOf(chat: number): Promise<readonly User[]> {
  const known = loaded.get(chat);
  if (known && Date.now() - known.at < age_ms_max) return known.members;
  const members = read(chat);
  loaded.delete(chat);
  loaded.set(chat, { at: Date.now(), members });
  const [oldest] = loaded.keys();
  if (loaded.size > groups_max && oldest !== undefined) loaded.delete(oldest);
  members.catch(() => loaded.delete(chat));
  return members;
}
