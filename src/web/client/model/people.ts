/**
 * Holds the current names and avatars of people. A message contains only the name that its author had when it was sent,
 * and no avatar. Therefore, each page of messages also contains the current names and avatars of the authors.
 */
import { useSyncExternalStore } from 'react';
import { get } from '../api.js';
import { me } from '../session.js';
import { Signal } from '../signal.js';
import type { Author, ChatSummary, Picture, Self, User } from '../types.js';

const people_max = 2_000;

const isAlike = (one: Author, other: Author): boolean =>
  one.user.first_name === other.user.first_name &&
  one.user.last_name === other.user.last_name &&
  one.avatar?.url === other.avatar?.url;

class People extends Signal {
  /** The people by id. If there are too many, the person who was added first is dropped. */
  readonly #byId = new Map<number, Author>();

  find(id: number | undefined): Author | undefined {
    return id === undefined ? undefined : this.#byId.get(id);
  }

  take(authors: readonly Author[]): void {
    let isNew = false;
    for (const author of authors) {
      const { id } = author.user;
      const known = this.#byId.get(id);
      if (known && isAlike(known, author)) continue;
      this.#byId.set(id, author);
      isNew = true;
      const [oldest] = this.#byId.keys();
      if (this.#byId.size > people_max && oldest !== undefined) this.#byId.delete(oldest);
    }
    if (isNew) this.changed();
  }

  /** Takes the author's current name from a new message. */
  rename(user: User): void {
    const known = this.#byId.get(user.id);
    if (known) this.take([{ ...known, user }]);
  }

  /** Takes the current name and avatar of the other person from a chat of two people, so that groups show them too. */
  renew({ type, user_id, first_name, last_name, username, avatar }: ChatSummary): void {
    // An account that was deleted has no name.
    if (type !== 'person' || !user_id || !first_name || !this.find(user_id)) return;
    const user = { id: user_id, is_bot: false, first_name, last_name, username };
    this.take([{ user, avatar }]);
  }
}

export const people = new People();

/** Returns the author's current name and avatar, or the given user if nothing newer is known. */
export function useAuthor(user: User | undefined): {
  readonly user?: User;
  readonly avatar?: Picture;
} {
  const known = useSyncExternalStore(people.subscribe, () => people.find(user?.id));
  return known ?? { user };
}

/** Stores the signed-in person's own data after a change in this or another window. */
export function takeSelf(self: Self): void {
  me.set(self);
  people.take([{ user: self, avatar: self.avatar }]);
}

/** Loads the data of the signed-in person again. Ignores errors, because the next load gets the same changes. */
export const loadSelf = (): Promise<void> => get<Self>('/api/me').then(takeSelf, () => {});
