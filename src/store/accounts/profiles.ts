/**
 * Changes people's names, avatars and settings. First commits the change in Postgres. Then refreshes the copies in
 * Redis, and notifies open windows: those of the person, and those of the other person in each of the person's chats of
 * two people.
 */
import { fail } from '../../errors.js';
import * as rows from '../../postgres/accounts/users.js';
import type { PictureChange, StoredPicture } from '../../postgres/bots/pictures.js';
import type { Auth } from '../access/auth.js';
import type { Chats } from '../chats/chats.js';
import { tellProfile, tellSettings } from '../chats/person_hints.js';
import { takeCalls } from '../core/buckets.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies, User } from '../core/control.js';
import { piecesOf } from '../core/groups.js';
import { directChat, sharedChat } from '../core/keys.js';
import { storeLimits as limits } from '../limits.js';

/** How many chats are updated in parallel after a change of a name or avatar. */
const side_by_side = 10;

async function inTurn<T>(all: readonly T[], work: (each: T) => Promise<unknown>): Promise<void> {
  for (const piece of piecesOf(all, side_by_side)) await Promise.all(piece.map(work));
}

export function createProfiles(
  context: StoreContext,
  control: ControlCopies,
  auth: Pick<Auth, 'revoke'>,
  chats: Pick<Chats, 'refresh'>,
) {
  const { db } = context;
  /** Makes every node use the stored values of a person, and notifies the person's windows. */
  async function renew(id: number): Promise<void> {
    await control.refresh('user', id);
    // Clears the person from the caches of all nodes, because the cached record contains the language and the name.
    await auth.revoke(`user:${id}`);
    await tellProfile(context, id);
  }
  /** Notifies the open windows of the other people in these chats. Notifies at most `profile_chats_max` people. */
  const tellPeople = (people: readonly rows.ChatWithPerson[]) =>
    inTurn(people.slice(0, limits.profile_chats_max), ({ chat, other }) =>
      tellSettings(context, other, sharedChat(chat)),
    );
  /** Updates the copies of the name in chats, but in at most `profile_chats_max` chats of each kind. */
  async function showName(id: number, { direct, people }: rows.ChatsWithName): Promise<void> {
    const most = limits.profile_chats_max;
    await inTurn(people.slice(0, most), ({ chat }) => chats.refresh(sharedChat(chat)));
    await tellPeople(people);
    await inTurn(direct.slice(0, most), (bot) => chats.refresh(directChat(bot, id)));
  }
  return {
    /**
     * Changes a person. Afterwards every node uses the new values. Before a change of the name, call `takeChange`.
     * Error: `user_not_found`.
     */
    async change(id: number, change: rows.UserChange): Promise<User> {
      const shown = (await rows.changeUser(db, id, change)) ?? fail('user_not_found');
      await renew(id);
      await showName(id, shown);
      return (await control.read('user', id)) ?? fail('user_not_found');
    },
    /** Counts a change of the person's name or avatar. Error: `too_many_requests`. */
    takeChange: (id: number): Promise<void> =>
      takeCalls(context, 'profile', id, {
        calls: limits.profile_changes_max,
        intervalUs: limits.profile_change_ms * 1_000,
      }),
    /**
     * Sets the avatar, or removes it if `avatar` is null. Afterwards every node uses the new avatar. Error:
     * `user_not_found`.
     */
    async setAvatar(id: number, avatar: readonly StoredPicture[] | null): Promise<PictureChange> {
      const change = (await rows.setUserAvatar(db, id, avatar)) ?? fail('user_not_found');
      if (change.present === null && change.former === null) return change;
      await renew(id);
      await tellPeople(await rows.loadPeopleChats(db, id, limits.profile_chats_max));
      return change;
    },
  };
}
