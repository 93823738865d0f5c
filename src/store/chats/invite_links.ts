/**
 * Manages the invite links of groups and channels. Postgres has all links. Redis has copies of the primary links only.
 */
import * as links from '../../postgres/chats/invite_links.js';
import * as requests from '../../postgres/chats/join_requests.js';
import { type ChatRef, sharedChat } from '../core/keys.js';
import { storeLimits as limits } from '../limits.js';
import { Members } from './members.js';

export type { InviteLinkRow, LinkName, LinkSettings } from '../../postgres/chats/invite_links.js';
export type { Decision, JoinRequestRow } from '../../postgres/chats/join_requests.js';

import type { Random } from '../../random.js';

const newCode = (random: Random): string => random.bytes(limits.invite_code_bytes).toString('base64url');

const codeAtEnd = /[A-Za-z0-9_-]{1,64}$/;

/**
 * Returns the code at the end of an invite link, or '' if there is none. Ignores the rest of the link, so that links
 * with a former BASE_URL stay valid.
 */
export const codeOf = (link: string): string => codeAtEnd.exec(link.slice(-64))?.[0] ?? '';

/**
 * Manages invite links and join requests. `postgres/chats/invite_links.ts` and `postgres/chats/join_requests.ts`
 * list the errors.
 */
export class InviteLinks extends Members {
  /**
   * Loads an invite link that was just changed. If it was just revoked, it still has a row, because Postgres keeps the
   * most recently revoked links.
   */
  async #changedLink(chat: ChatRef, id: number): Promise<links.InviteLinkRow> {
    await this.control.refresh('details', chat.id);
    const row = await links.loadLink(this.context.db, id);
    if (row === null) throw new Error('a changed invite link is missing');
    return row;
  }

  async createLink(chat: ChatRef, by: number, settings: links.LinkSettings) {
    const id = await links.createLink(this.context.db, chat.id, by, newCode(this.context.random), settings);
    return this.#changedLink(chat, id);
  }

  async exportLink(chat: ChatRef, by: number) {
    return this.#changedLink(
      chat,
      await links.exportLink(this.context.db, chat.id, by, newCode(this.context.random)),
    );
  }

  async editLink(chat: ChatRef, by: number, name: links.LinkName, settings: links.LinkSettings) {
    return this.#changedLink(chat, await links.editLink(this.context.db, chat.id, by, name, settings));
  }

  async revokeLink(chat: ChatRef, by: number, name: links.LinkName) {
    return this.#changedLink(
      chat,
      await links.revokeLink(this.context.db, chat.id, by, name, newCode(this.context.random)),
    );
  }

  links(chat: ChatRef, before: number, limit: number) {
    return links.loadLinks(this.context.db, chat.id, before, limit);
  }

  usableLink(code: string) {
    return links.loadUsableLink(this.context.db, code);
  }

  async joinByLink(code: string, user: number): Promise<requests.Joined> {
    const joined = await requests.joinByLink(this.context.db, code, user);
    const chat = sharedChat(joined.chat_id);
    if (joined.status === 'requested') await this.tellEvents(chat);
    else await this.changed(chat, user, false);
    return joined;
  }

  /** Approves or declines a join request. */
  async decideRequest(
    chat: ChatRef,
    by: number,
    user: number,
    decision: requests.Decision,
    missing: requests.RequestMissing,
  ) {
    await requests.decideRequest(this.context.db, chat.id, by, user, decision, missing);
    if (decision === 'approve') await this.changed(chat, user, false);
  }

  withdrawRequest(code: string, user: number) {
    return requests.withdrawRequest(this.context.db, code, user);
  }

  hasAsked(chat: ChatRef, user: number) {
    return requests.hasAsked(this.context.db, chat.id, user);
  }

  joinRequests(chat: ChatRef, before: number, limit: number) {
    return requests.loadRequests(this.context.db, chat.id, before, limit);
  }
}
