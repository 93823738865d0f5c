/** Finds, opens and creates chats, and changes their title, description, photo and permissions. */
import type { StoredPicture } from '../../postgres/bots/pictures.js';
import * as rows from '../../postgres/chats/chats.js';
import * as details from '../../postgres/chats/details.js';
import type { Who } from '../../postgres/chats/events.js';
import { loadAcquaintances } from '../../postgres/chats/members.js';
import { setPermissions as storePermissions } from '../../postgres/chats/moderation.js';
import { takeCalls } from '../core/buckets.js';
import type { StoreContext } from '../core/context.js';
import type { ChatDetails, Member } from '../core/control.js';
import { type ChatRef, directChat, sharedChat } from '../core/keys.js';
import { createNames } from '../core/names.js';
import { userProfile } from '../core/profiles.js';
import { storeLimits as limits } from '../limits.js';
import { InviteLinks } from './invite_links.js';

export type { MemberRow } from '../../postgres/chats/chats.js';
export type { ChatKind, ChatState } from './chat_copies.js';

const nobody: Member = {
  status: 'none',
  rights: {},
  isBot: false,
  until_date: 0,
  custom_title: '',
  promoted_by: 0,
};

export { userProfile };

/**
 * Limits how often the service checks whether two people share a chat. For a person in thousands of chats, one check
 * takes Postgres several milliseconds.
 */
const takeLookUps = (context: StoreContext, who: number, count: number) =>
  takeCalls(context, 'look_up', who, {
    calls: limits.stranger_look_ups_max,
    intervalUs: limits.stranger_look_up_ms * 1_000,
    count,
  });

/** Finds, opens, creates and changes chats. A change is first committed in Postgres, and then shown in the chat. */
export class Chats extends InviteLinks {
  readonly #names = createNames(this.context);

  findByUsername(username: string): Promise<ChatRef | null> {
    return this.#names.find(username);
  }

  refreshName(id: number): Promise<void> {
    return this.#names.refresh(id);
  }

  /**
   * Opens a direct chat and unblocks the bot. Errors: `bot_not_found`, `cant_write_to_bot`, `too_many_chats`.
   */
  async openDirect(bot: number, user: number) {
    const chat = directChat(bot, user);
    const incarnation = await this.incarnationOf(bot);
    if (await rows.openDirectChat(this.context.db, bot, user, incarnation)) {
      await Promise.all([this.refresh(chat), this.control.refresh('chats', user)]);
    } else {
      await this.setBlocked(bot, user, false);
    }
  }

  /**
   * Creates a chat. A channel or group with a username is public by default. Errors: `username_taken`,
   * `too_many_chats`.
   */
  async create(
    type: 'group' | 'channel',
    title: string,
    creator: number,
    {
      username,
      private: hidden = type === 'group' && !username,
    }: { readonly username?: string | undefined; readonly private?: boolean | undefined } = {},
  ): Promise<ChatRef> {
    const chat = { type, title, creator, username, private: hidden };
    const id = await rows.createChat(this.context.db, chat, (made) => this.incarnationOf(made));
    await Promise.all([
      this.control.refresh('member', id, creator),
      username === undefined ? undefined : this.refreshName(id),
    ]);
    await this.control.refresh('chats', creator);
    await this.tellEvents(sharedChat(id));
    return sharedChat(id);
  }

  incarnationOf(chat: number): Promise<number> {
    const { shards, keys } = this.context;
    const partition = keys.partitions.of(chat);
    return rows.loadIncarnation(shards.at(partition), partition);
  }

  async member(chat: ChatRef, who: number): Promise<Member> {
    return (await this.control.read('member', chat.id, who)) ?? nobody;
  }

  /**
   * Returns those of `ids` that `who` knows: `who` itself, and everyone who shares a chat with `who`. The shared chat
   * is a direct chat, a group, or a channel that one of the two manages. Other channels do not count, because
   * subscribers cannot see each other. If `chat` is a direct chat, its user needs no check. Error: `too_many_requests`
   * for more than limits.stranger_look_ups_max people without a direct chat.
   */
  async acquaintances(who: number, chat: ChatRef | null, ids: readonly number[]) {
    const known = new Set<number>();
    const others: number[] = [];
    const look = async (id: number) => {
      if (id === who || (chat && id === chat.user)) return known.add(id);
      const list = await this.control.read('chats', id);
      if (list?.direct.includes(who)) return known.add(id);
      return list && others.push(id);
    };
    await Promise.all([...new Set(ids)].map(look));
    if (others.length === 0) return known;
    await takeLookUps(this.context, who, others.length);
    for (const id of await loadAcquaintances(this.context.db, who, others)) known.add(id);
    return known;
  }

  members(chat: ChatRef, after: number, limit: number) {
    return rows.loadMembers(this.context.db, chat.id, after, limit);
  }

  async listOf(user: number): Promise<ChatRef[]> {
    const list = await this.control.read('chats', user);
    if (!list) return [];
    return [...list.direct.map((bot) => directChat(bot, user)), ...list.shared.map(sharedChat)];
  }

  async details(chat: ChatRef): Promise<ChatDetails> {
    const none = { description: '', photo: [], permissions: '', links: {} };
    return (await this.control.read('details', chat.id)) ?? none;
  }

  /**
   * Sets a chat's default permissions, given in their stored form. Errors: `chat_not_found`, `permissions_not_allowed`.
   */
  async setPermissions(chat: ChatRef, by: Who, permissions: string) {
    if (await storePermissions(this.context.db, chat.id, by, permissions)) await this.#detailsChanged(chat);
  }

  /** Sets the title. Errors: `chat_not_found`, `title_not_allowed`. */
  async setTitle(chat: ChatRef, by: Who, title: string) {
    if (await details.setTitle(this.context.db, chat.id, by, title)) await this.#detailsChanged(chat);
  }

  /** Sets the description. Errors: `chat_not_found`, `about_not_allowed`, `about_not_modified`. */
  async setDescription(chat: ChatRef, by: Who, description: string) {
    await details.setDescription(this.context.db, chat.id, by, description);
    await this.#detailsChanged(chat);
  }

  /**
   * Sets the chat's photo, or removes it if `photo` is null. `shown` is the photo in the service message. Errors:
   * `chat_not_found`, `photo_not_allowed`, `chat_not_modified`.
   */
  async setPhoto(chat: ChatRef, by: Who, photo: readonly StoredPicture[] | null, shown: readonly object[]) {
    await details.setPhoto(this.context.db, chat.id, by, photo, shown);
    await this.#detailsChanged(chat);
  }

  async #detailsChanged(chat: ChatRef): Promise<void> {
    await Promise.all([this.control.refresh('details', chat.id), this.refresh(chat)]);
    await this.tellEvents(chat);
  }
}
