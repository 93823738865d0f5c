/** Chat membership. A change commits in Postgres, then updates the copies in Redis, then is announced to the bots. */
import { ApiError, fail } from '../../errors.js';
import { limits } from '../../limits.js';
import type { MemberRow, MemberStatus } from '../../postgres/chats/chats.js';
import * as invited from '../../postgres/chats/invitations.js';
import * as rows from '../../postgres/chats/members.js';
import { messageKinds, type Profile, pack, packMessage } from '../core/codec.js';
import { fillAttemptsMax, type StoreContext, uniqueText } from '../core/context.js';
import type { Administrator, ControlCopies } from '../core/control.js';
import { type ChatRef, chatText, directChat, sharedChat } from '../core/keys.js';
import { botProfile, userProfile } from '../core/profiles.js';
import type { Forwarder } from '../updates/forwarder.js';

export type { InvitationRow } from '../../postgres/chats/invitations.js';

/** The change described by a member update, stored in the service part of its record. */
export interface MemberChange {
  readonly who: Profile;
  readonly was: rows.Standing;
  readonly became: rows.Standing;
}

export interface Members {
  /**
   * Sets the status of a person or bot. `by` made the change; without it, the member did. Errors: `too_many_chats`,
   * `too_many_chat_bots`, `too_many_administrators`, `not_enough_rights` for the creator.
   */
  putMember(
    chat: ChatRef,
    member: { readonly id: number; readonly is_bot: boolean },
    status: Exclude<MemberStatus, 'creator'>,
    rights: Readonly<Record<string, boolean>>,
    by?: number,
  ): Promise<MemberRow>;
  /**
   * Adds a person, or changes their status. Returns null if `by` may not add them: they were invited instead. Errors:
   * those of `putMember`, `user_not_found`, `invitation_declined`, `too_many_invitations`.
   */
  addPerson(
    chat: ChatRef,
    user: number,
    status: 'administrator' | 'member',
    rights: Readonly<Record<string, boolean>>,
    by: number,
  ): Promise<MemberRow | null>;
  /** A person's open invitations with ids below `before`, newest first. */
  invitations(user: number, before: number, limit: number): Promise<invited.InvitationRow[]>;
  /** Accepts an invitation to a chat. Errors: `invitation_not_found`, `too_many_chats`. */
  acceptInvitation(chat: ChatRef, user: number): Promise<void>;
  /** Declines an invitation to a chat. Error: `invitation_not_found`. */
  declineInvitation(chat: ChatRef, user: number): Promise<void>;
  /** Adds a person to a public chat at their own request. Errors: `chat_not_found`, `kicked_from_chat`, `too_many_chats`. */
  join(chat: ChatRef, user: number): Promise<void>;
  /** The creator and the administrators of a chat, sorted by id. */
  administrators(chat: ChatRef): Promise<readonly Administrator[]>;
  /**
   * Blocks or unblocks a bot for a person. While it is blocked, neither can write to the other. Does nothing if the
   * chat was never opened or already has that state.
   */
  setBlocked(bot: number, user: number, blocked: boolean): Promise<void>;
  /** Transfers a chat from its creator to the first administrator who is a person. Does nothing if `from` is not the creator. */
  passOn(chat: ChatRef, from: number): Promise<void>;
  /** Sends pending member events of a chat to its bots, in order. */
  postEvents(chat: ChatRef): Promise<void>;
}

export function createMembers(
  { db, scripts, keys }: StoreContext,
  control: ControlCopies,
  forwarder: Forwarder,
  chats: {
    readonly fill: (chat: ChatRef, ticket: string) => Promise<boolean>;
    readonly refresh: (chat: ChatRef) => Promise<void>;
  },
): Members {
  async function profileOf(id: number): Promise<Profile> {
    const user = await control.read('user', id);
    if (user) return userProfile(user);
    const bot = await control.read('bot', id);
    return bot ? botProfile(bot) : { id, n: '' };
  }

  /** Posts one event; a repeat adds nothing. Returns false when the chat is gone. */
  async function post(chat: ChatRef, event: rows.MemberEvent): Promise<boolean> {
    const [who, by] = await Promise.all([profileOf(event.member_id), profileOf(event.by_id)]);
    const change: MemberChange = { who, was: event.was, became: event.became };
    const record = packMessage({
      ...{ version: 0, date: event.date, editedAt: 0, sender: by.id, kind: messageKinds.service, flags: 0 },
      ...{ content: {}, markup: null, origin: { from: by, service: { ...change } }, post: 0 },
    });
    const partition = keys.partitions.of(chat.id);
    const key = keys.chat(chat);
    const at = {
      meta: keys.meta(partition),
      journal: keys.journal(partition),
      ...{ chat: key, ticket: keys.ticket(key), outbox: keys.outbox(partition) },
      request: keys.request(partition, `member_event_${event.id}`),
    };
    const args = {
      ...{ chat: chatText(chat), event: String(event.id), own: event.is_bot ? String(event.member_id) : '' },
      ...{ record, from: pack(by), token: uniqueText() },
    };
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const result = await scripts.call('chats/post_member_event', partition, at, args);
      if (result.status === 'ok') return true;
      if (result.status === 'chat_missing' && !(await chats.fill(chat, result.ticket))) return false;
      if (result.status === 'outbox_full') fail('too_many_requests', { retry_after: 1 });
    }
    return fail('unavailable', { retry_after: 1 });
  }

  async function postEvents(chat: ChatRef): Promise<void> {
    for (;;) {
      const events = await rows.pendingEvents(db, chat.id, chat.user, limits.member_events_batch_max);
      // Post in order and without gaps, so that each bot receives events in order, whichever process posts them.
      for (const event of events) await post(chat, event);
      if (events.length === 0) return;
      await rows.removeEvents(
        db,
        events.map(({ id }) => id),
      );
      // Forward at once, because direct messages bypass the outbox and must not overtake these events. The sweep
      // retries failures.
      await forwarder.forwardAll(keys.partitions.of(chat.id)).catch(() => undefined);
      if (events.length < limits.member_events_batch_max) return;
    }
  }

  async function changed(chat: ChatRef, id: number, isBot: boolean): Promise<void> {
    await Promise.all([
      control.refresh('member', chat.id, id),
      control.refresh('administrators', chat.id),
      chats.refresh(chat),
      isBot ? undefined : control.refresh('chats', id),
    ]);
    await tellEvents(chat);
  }

  /** Posts the events of a committed change. If Redis is full, the sweep posts them later. */
  async function tellEvents(chat: ChatRef): Promise<void> {
    await postEvents(chat).catch((error) => {
      if (!(error instanceof ApiError && error.kind === 'too_many_requests')) throw error;
    });
  }

  return {
    postEvents,
    async putMember(chat, member, status, rights, by = member.id) {
      const row = await rows.putMember(db, chat.id, member, status, rights, by);
      await changed(chat, member.id, member.is_bot);
      return row;
    },
    async addPerson(chat, user, status, rights, by) {
      const row = await invited.addPerson(db, chat.id, user, { status, rights }, by);
      if (row) await changed(chat, user, false);
      return row;
    },
    invitations: (user, before, limit) => invited.loadInvitations(db, user, before, limit),
    async acceptInvitation(chat, user) {
      await invited.acceptInvitation(db, chat.id, user);
      await changed(chat, user, false);
    },
    async declineInvitation(chat, user) {
      await invited.declineInvitation(db, chat.id, user);
    },
    async join(chat, user) {
      if (await rows.joinChat(db, chat.id, user)) await changed(sharedChat(chat.id), user, false);
    },
    async passOn(chat, from) {
      const heir = await rows.passOnChat(db, chat.id, from);
      if (heir === false) return;
      await control.refresh('member', chat.id, from);
      if (heir === null) await control.refresh('administrators', chat.id);
      else await changed(chat, heir, false);
    },
    async administrators(chat) {
      return (await control.read('administrators', chat.id)) ?? [];
    },
    async setBlocked(bot, user, blocked) {
      if (!(await rows.setBlocked(db, bot, user, blocked))) return;
      const chat = directChat(bot, user);
      await chats.refresh(chat);
      await tellEvents(chat);
    },
  };
}
