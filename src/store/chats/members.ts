/**
 * Manages chat membership. A change is first committed in Postgres, then copied to Redis, then announced to the bots.
 */

import { ApiError, fail } from '../../errors.js';
import type { MemberRow, MemberStatus } from '../../postgres/chats/chats.js';
import * as events from '../../postgres/chats/events.js';
import * as invited from '../../postgres/chats/invitations.js';
import * as rows from '../../postgres/chats/members.js';
import * as moderation from '../../postgres/chats/moderation.js';
import { hasRight, isInChat } from '../../rules/rights.js';
import {
  messageFlags,
  messageKinds,
  type Profile,
  pack,
  packMessage,
  packMessageTail,
} from '../core/codec.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import type { Administrator, ControlCopies } from '../core/control.js';
import { type ChatRef, chatText, directChat, sharedChat } from '../core/keys.js';
import { botProfile, userProfile } from '../core/profiles.js';
import { sharedKeys } from '../core/script_keys.js';
import { storeLimits as limits } from '../limits.js';
import type { Forwarder } from '../updates/forwarder.js';
import { ChatCopies } from './chat_copies.js';
import { putPersonDraft } from './person_drafts.js';

export type { InvitationRow } from '../../postgres/chats/invitations.js';

export interface MemberChange {
  readonly who: Profile;
  readonly was: events.Standing;
  readonly became: events.Standing;
  readonly link?: ShownLink;
}

export interface ShownLink extends Omit<events.EventLink, 'code' | 'creator_id'> {
  readonly url: string;
  readonly creator: Profile;
}

export class Members extends ChatCopies {
  readonly #forwarder: Forwarder;

  constructor(context: StoreContext, control: ControlCopies, forwarder: Forwarder) {
    super(context, control);
    this.#forwarder = forwarder;
  }

  async #profileOf(id: number): Promise<Profile> {
    const user = await this.control.read('user', id);
    if (user) return userProfile(user);
    const bot = await this.control.read('bot', id);
    return bot ? botProfile(bot) : { id, n: '' };
  }

  /** Returns the URL of an invite link. The code is in the fragment, which browsers do not send to servers. */
  inviteUrl(code: string): string {
    return `${this.context.baseUrl}/app#/join/${code}`;
  }

  async #shownLink({ code, creator_id, ...link }: events.EventLink): Promise<ShownLink> {
    return { ...link, url: this.inviteUrl(code), creator: await this.#profileOf(creator_id) };
  }

  /** Returns the bots to which an event may show its invite link: the administrators that may invite people. */
  async #invitersOf(chat: ChatRef, event: events.MemberEvent): Promise<readonly number[]> {
    if (event.request_bots !== null || event.link === null) return event.request_bots ?? [];
    const administrators = await this.administrators(chat);
    return administrators
      .filter((each) => each.isBot && hasRight(each, 'can_invite_users'))
      .map(({ id }) => id);
  }

  /**
   * Posts one event to the chat and its bots. Posting the same event again adds nothing. Returns false if the chat no
   * longer exists.
   */
  async #post(chat: ChatRef, event: events.MemberEvent): Promise<boolean> {
    const [who, by] = await Promise.all([this.#profileOf(event.member_id), this.#profileOf(event.by_id)]);
    const { was, became } = event;
    const recordOf = (change: MemberChange) =>
      packMessage({
        version: 0,
        date: event.date,
        editedAt: 0,
        sender: by.id,
        kind: messageKinds.service,
        flags: 0,
        content: {},
        markup: null,
        origin: { from: by, service: { ...change } },
        post: 0,
      });
    const change = { who, was, became };
    // If a member joined by a link, the member is the author of the service message. An approved join request counts as
    // joining by a link.
    const author = event.link === null ? by : who;
    const service = event.service && {
      ...event.service,
      ...(event.service.new_chat_members ? { new_chat_members: [who] } : {}),
      ...(event.service.left_chat_member ? { left_chat_member: who } : {}),
    };
    const tail =
      service &&
      packMessageTail({
        sender: author.id,
        kind: messageKinds.service,
        flags: messageFlags.silent,
        content: {},
        markup: null,
        origin: { from: author, service },
      });
    const { scripts, keys } = this.context;
    const partition = keys.partitions.of(chat.id);
    const at = sharedKeys(keys, chat, `member_event_${event.id}`, event.member_id);
    // A bot gets updates only about chats that it was or is in. Otherwise strangers could fill a bot's queue by banning
    // the bot in many chats.
    const isMember = event.is_bot && [was, became].some(({ status }) => isInChat(status));
    const args = {
      chat: chatText(chat),
      event: String(event.id),
      bots: pack([isMember ? String(event.member_id) : '', (await this.#invitersOf(chat, event)).join()]),
      record: rows.sameStanding(was, became) ? '' : recordOf(change),
      linked: event.link === null ? '' : recordOf({ ...change, link: await this.#shownLink(event.link) }),
      service: tail ?? '',
      from: pack(by),
    };
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      // Uses a new token for each attempt. If an attempt used an earlier token again, the script could recreate a fill
      // ticket that a write has removed.
      const own = { token: this.context.uniqueText(), ...args };
      const result = await scripts.call('chats/post_member_event', partition, at, own);
      if (result.status === 'ok') return true;
      if (result.status === 'chat_missing' && !(await this.fill(chat, result.ticket))) return false;
      if (result.status === 'outbox_full') fail('too_many_requests', { retry_after: 1 });
    }
    return fail('unavailable', { retry_after: 1 });
  }

  async postEvents(chat: ChatRef): Promise<void> {
    for (;;) {
      const pending = await events.pendingEvents(
        this.context.db,
        chat.id,
        chat.user,
        limits.member_events_batch_max,
      );
      // Posts all pending events in order. Each bot then receives them in order, even if several processes post events
      // of this chat.
      for (const event of pending) await this.#post(chat, event);
      if (pending.length === 0) return;
      await events.removeEvents(
        this.context.db,
        pending.map(({ id }) => id),
      );
      // Forwards the outbox immediately. Otherwise messages in direct chats, which bypass the outbox, could overtake
      // these events. If this fails, the sweep forwards the outbox later.
      await this.#forwarder.forwardAll(this.context.keys.partitions.of(chat.id)).catch(() => undefined);
      if (pending.length < limits.member_events_batch_max) return;
    }
  }

  protected async changed(chat: ChatRef, id: number, isBot: boolean): Promise<void> {
    await Promise.all([
      this.control.refresh('member', chat.id, id),
      this.control.refresh('administrators', chat.id),
      this.refresh(chat),
    ]);
    // Refreshes the person's chat list only after the other copies, because this refresh wakes the person's event
    // streams, and their clients then read the chat.
    if (!isBot) {
      await this.control.refresh('chats', id);
      await this.#dropDraft(chat, id);
    }
    await this.tellEvents(chat);
  }

  /**
   * Removes the draft of a person who is no longer in the chat. Ignores errors, because only the author sees the draft
   * and it expires.
   */
  async #dropDraft(chat: ChatRef, user: number): Promise<void> {
    try {
      const member = await this.control.read('member', chat.id, user);
      if (member && isInChat(member.status)) return;
      await putPersonDraft(this.context, user, chat, '');
    } catch {
      // The draft expires.
    }
  }

  /** Posts the events of a change. If the outbox is full, the sweep posts the events later. */
  async tellEvents(chat: ChatRef): Promise<void> {
    await this.postEvents(chat).catch((error) => {
      if (!(error instanceof ApiError && error.kind === 'too_many_requests')) throw error;
    });
  }

  /**
   * Sets the status of a person or bot. `by` is the account that makes the change, by default the member. If `silent`
   * is true, the chat gets no service message. Errors: `too_many_chats`, `too_many_chat_bots`,
   * `too_many_administrators`, `not_enough_rights` for the creator.
   */
  async putMember(
    chat: ChatRef,
    member: { readonly id: number; readonly is_bot: boolean },
    status: Exclude<MemberStatus, 'creator'>,
    rights: Readonly<Record<string, boolean>>,
    by: number = member.id,
    silent = false,
  ): Promise<MemberRow> {
    const row = await rows.putMember(this.context.db, chat.id, member, status, rights, by, silent);
    await this.changed(chat, member.id, member.is_bot);
    return row;
  }

  /**
   * Adds a person to a chat, or changes their status. If `by` may only invite the person, invites the person and
   * returns null. Errors: `user_not_found`, `cant_add_person`, `invitation_declined`, `too_many_invitations`, and the
   * errors of `putMember`.
   */
  async addPerson(
    chat: ChatRef,
    user: number,
    status: 'administrator' | 'member',
    rights: Readonly<Record<string, boolean>>,
    by: number,
  ): Promise<MemberRow | null> {
    const row = await invited.addPerson(this.context.db, chat.id, user, { status, rights }, by);
    if (row) await this.changed(chat, user, false);
    return row;
  }

  invitations(user: number, before: number, limit: number) {
    return invited.loadInvitations(this.context.db, user, before, limit);
  }

  /** Accepts an invitation. Errors: `invitation_not_found`, `too_many_chats`. */
  async acceptInvitation(chat: ChatRef, user: number) {
    await invited.acceptInvitation(this.context.db, chat.id, user);
    await this.changed(chat, user, false);
  }

  /** Declines an invitation. Error: `invitation_not_found`. */
  async declineInvitation(chat: ChatRef, user: number) {
    await invited.declineInvitation(this.context.db, chat.id, user);
  }

  /** Adds the calling person to a public chat. Errors: `chat_not_found`, `kicked_from_chat`, `too_many_chats`. */
  async join(chat: ChatRef, user: number) {
    if (await rows.joinChat(this.context.db, chat.id, user))
      await this.changed(sharedChat(chat.id), user, false);
  }

  /**
   * Makes the first administrator who is a person the new creator of the chat. Does nothing if `from` is not the
   * creator.
   */
  async passOn(chat: ChatRef, from: number) {
    const heir = await rows.passOnChat(this.context.db, chat.id, from);
    if (heir === false) return;
    await this.control.refresh('member', chat.id, from);
    if (heir === null) await this.control.refresh('administrators', chat.id);
    else await this.changed(chat, heir, false);
  }

  /**
   * Bans a member until `until` (Unix time in seconds), or forever if it is null. `postgres/chats/moderation.ts` lists
   * the errors.
   */
  async ban(chat: ChatRef, by: events.Who, member: events.Who, until: number | null) {
    if (await moderation.ban(this.context.db, { chat: chat.id, by, member }, until))
      await this.changed(chat, member.id, member.is_bot);
  }

  async unban(chat: ChatRef, by: events.Who, member: events.Who, onlyIfBanned: boolean) {
    if (await moderation.unban(this.context.db, { chat: chat.id, by, member }, onlyIfBanned))
      await this.changed(chat, member.id, member.is_bot);
  }

  async restrict(
    chat: ChatRef,
    by: events.Who,
    member: events.Who,
    rights: Readonly<Record<string, boolean>> | null,
    until: number | null,
  ) {
    if (await moderation.restrict(this.context.db, { chat: chat.id, by, member }, rights, until))
      await this.changed(chat, member.id, member.is_bot);
  }

  async promote(
    chat: ChatRef,
    by: events.Who,
    member: events.Who,
    rights: Readonly<Record<string, boolean>> | null,
  ) {
    if (await moderation.promote(this.context.db, { chat: chat.id, by, member }, rights))
      await this.changed(chat, member.id, member.is_bot);
  }

  async setCustomTitle(chat: ChatRef, by: events.Who, member: events.Who, title: string) {
    if (await moderation.setCustomTitle(this.context.db, { chat: chat.id, by, member }, title))
      await this.changed(chat, member.id, member.is_bot);
  }

  async administrators(chat: ChatRef): Promise<readonly Administrator[]> {
    return (await this.control.read('administrators', chat.id)) ?? [];
  }

  /**
   * Blocks or unblocks a bot for a person. While the bot is blocked, the bot and the person cannot write to each other.
   * Does nothing if their chat was never opened, or if the bot is already in the requested state.
   */
  async setBlocked(bot: number, user: number, blocked: boolean) {
    if (!(await rows.setBlocked(this.context.db, bot, user, blocked))) return;
    const chat = directChat(bot, user);
    await this.refresh(chat);
    await this.tellEvents(chat);
  }
}
