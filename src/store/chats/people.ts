/** Opens chats of two people, and blocks people (decision 0083). */
import * as rows from '../../postgres/chats/people.js';
import type { StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { type ChatRef, sharedChat } from '../core/keys.js';
import type { Chats } from './chats.js';
import { tellSettings } from './person_hints.js';

export type People = ReturnType<typeof createPeople>;

export function createPeople(
  context: StoreContext,
  control: ControlCopies,
  chats: Pick<Chats, 'incarnationOf' | 'refresh'>,
) {
  const { db } = context;
  return {
    /** Returns the chat of two people, or null if it was never opened. */
    async find(user: number, other: number): Promise<ChatRef | null> {
      const id = await rows.loadPersonChat(db, user, other);
      return id === null ? null : sharedChat(id);
    },
    /**
     * Opens the chat of two people, or returns it if it is already open. `isStranger` is true if the two people share
     * no chat. Errors: `user_not_found`, `person_blocked_by_you`, `cant_write_to_person`, `too_many_requests`,
     * `too_many_chats`.
     */
    async open(user: number, other: number, isStranger: boolean): Promise<ChatRef> {
      const incarnationOf = (id: number) => chats.incarnationOf(id);
      const { id, isNew } = await rows.openPersonChat(db, user, other, isStranger, incarnationOf);
      if (isNew) {
        await Promise.all([user, other].map((person) => control.refresh('member', id, person)));
        // Refreshes the chat lists only after the other copies, because this refresh wakes the event streams of both
        // people, and their clients then read the chat.
        await Promise.all([user, other].map((person) => control.refresh('chats', person)));
      }
      return sharedChat(id);
    },
    /**
     * Blocks or unblocks a person. While one of two people blocks the other, nobody can write in their chat. Errors:
     * `unauthorized`, `user_not_found`, `too_many_blocked_people`.
     */
    async setBlocked(user: number, other: number, blocked: boolean): Promise<void> {
      const id = await rows.setPersonBlocked(db, user, other, blocked);
      if (id === null) return;
      const chat = sharedChat(id);
      await chats.refresh(chat);
      await Promise.all([user, other].map((person) => tellSettings(context, person, chat)));
    },
    hasBlocked: (user: number, other: number) => rows.hasBlocked(db, user, other),
    /** Returns the people whom `user` has blocked, with block ids below `before`, newest first. */
    blocked: (user: number, before: number, limit: number) => rows.loadBlocked(db, user, before, limit),
  };
}
