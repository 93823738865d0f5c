/** Chats: their records in Redis, their members, and how they are opened. */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import * as rows from '../../postgres/chats/chats.js';
import { loadAcquaintances } from '../../postgres/chats/members.js';
import { type Profile, pack, unpack } from '../core/codec.js';
import { fillAttemptsMax, readBackTtlMs, type StoreContext, uniqueText } from '../core/context.js';
import type { ControlCopies, Member } from '../core/control.js';
import { type ChatRef, directChat, isDirect, sharedChat } from '../core/keys.js';
import { createNames } from '../core/names.js';
import { userProfile } from '../core/profiles.js';
import type { Forwarder } from '../updates/forwarder.js';
import { createMembers, type Members } from './members.js';

export interface ChatState {
  readonly chat: ChatRef;
  /** id of the chat's last message */
  readonly newest: number;
  /** profile of the user in a direct chat, of the chat otherwise */
  readonly profile: Profile;
  readonly bots: readonly number[];
  readonly kind: ChatKind;
  /** id of the pinned message; 0 for none */
  readonly pinned: number;
}

export type { MemberRow } from '../../postgres/chats/chats.js';

/** `private` is a channel visible only to members; `blocked` is a direct chat whose user blocked the bot. */
export type ChatKind = 'direct' | 'blocked' | 'group' | 'channel' | 'private';

export interface Chats extends Members {
  /** Reads a chat; loads its record into Redis if missing. Null if there is no such chat. */
  find(chat: ChatRef): Promise<ChatState | null>;
  /** Loads a record that a script found missing; `ticket` is the script's. Returns false if there is no such chat. */
  fill(chat: ChatRef, ticket: string): Promise<boolean>;
  /** Copies a committed change of profile or bots to Redis. */
  refresh(chat: ChatRef): Promise<void>;
  /** Copies the username of a new or renamed chat to Redis. */
  refreshName(chat: number): Promise<void>;
  /**
   * Opens the direct chat of a bot and a user if necessary, and unblocks the bot. Errors: `bot_not_found`,
   * `cant_write_to_bot`, `too_many_chats`.
   */
  openDirect(bot: number, user: number): Promise<void>;
  /**
   * Creates a group or channel. By default, channels and groups with a username are public. Errors: `username_taken`,
   * `too_many_chats`.
   */
  create(
    type: 'group' | 'channel',
    title: string,
    creator: number,
    more?: { readonly username?: string | undefined; readonly private?: boolean | undefined },
  ): Promise<ChatRef>;
  /** Finds the public group or channel with this username, given without `@`. */
  findByUsername(username: string): Promise<ChatRef | null>;
  /** Members of a chat with ids above `after`, sorted by id. */
  members(chat: ChatRef, after: number, limit: number): Promise<rows.MemberRow[]>;
  /**
   * Shows a bot's chat action to current viewers. Errors: `chat_not_found`, `cant_initiate`, `bot_blocked`,
   * `not_group_member`, `not_channel_member`.
   */
  showAction(chat: ChatRef, bot: number, action: string): Promise<void>;
  /** A person's or bot's membership in a group or channel. */
  member(chat: ChatRef, who: number): Promise<Member>;
  /**
   * Filters the ids: keeps people who share a chat with `who`, and `who`. A shared chat is a direct chat, a group, or a
   * channel that either of them manages, because subscribers cannot see each other. `chat` is checked first. Error:
   * `too_many_requests` beyond limits.stranger_look_ups_max people without a direct chat.
   */
  acquaintances(who: number, chat: ChatRef | null, ids: readonly number[]): Promise<ReadonlySet<number>>;
  /** The chats of a user, direct ones first. */
  listOf(user: number): Promise<ChatRef[]>;
}

/** Prefix of hints that show a chat action rather than announce a change. */
export const actionHint = 'action ';

/** Whether this status makes a person a member of the chat. */
export const isPresent = (status: string): boolean =>
  status === 'creator' || status === 'administrator' || status === 'member';

export { userProfile };

export function createChats(context: StoreContext, control: ControlCopies, forwarder: Forwarder): Chats {
  const { db, shards, scripts, keys } = context;
  const partitionOf = (chat: ChatRef) => keys.partitions.of(chat.id);
  /** Limits comparisons of chat lists: a person may be in thousands of chats, so each costs Postgres milliseconds. */
  async function takeLookUps(who: number, count: number): Promise<void> {
    const partition = keys.partitions.of(who);
    const { wait } = await scripts.call(
      'limits/take',
      partition,
      { bucket: keys.rate(partition, `look_up:${who}`) },
      { calls: limits.stranger_look_ups_max, interval_us: limits.stranger_look_up_ms * 1_000, count },
    );
    if (wait > 0) fail('too_many_requests', { retry_after: Math.ceil(wait / 1_000) });
  }
  const keysOf = (chat: ChatRef) => {
    const key = keys.chat(chat);
    return { chat: key, ticket: keys.ticket(key) };
  };
  const incarnationOf = (partition: number) => rows.loadIncarnation(shards.of(partition).db, partition);
  const metaOf = (chat: ChatRef) => ({ meta: keys.meta(partitionOf(chat)) });

  /** Loads a chat's own record from Postgres. */
  async function load(chat: ChatRef) {
    if (isDirect(chat)) {
      const [row, user] = await Promise.all([
        rows.loadDirectChat(db, chat.id, chat.user),
        control.read('user', chat.user),
      ]);
      if (!row) return null;
      const kind: ChatKind = row.blocked ? 'blocked' : 'direct';
      // The account of this user was deleted, but the chat is not erased yet: show it without a name.
      const profile = user ? userProfile(user) : { id: chat.user, n: '' };
      return { ...row, profile, kind, bots: '' };
    }
    const row = await rows.loadChat(db, chat.id);
    if (!row) return null;
    const profile: Profile = {
      id: row.id,
      t: row.type,
      n: row.title,
      m: row.member_count,
      ...(row.username === null ? {} : { u: row.username }),
    };
    const kind: ChatKind = row.type === 'channel' && row.private ? 'private' : row.type;
    return {
      incarnation: row.incarnation,
      profile,
      version: row.version,
      kind,
      bots: row.bots.join(','),
    };
  }

  async function fill(chat: ChatRef, ticket: string): Promise<boolean> {
    const shard = shards.of(partitionOf(chat)).db;
    const [row, sequence, pin] = await Promise.all([
      load(chat),
      rows.loadSequence(shard, chat.id, chat.user),
      rows.loadPin(shard, chat.id, chat.user),
    ]);
    if (!row) return false;
    const changed = Math.max(sequence?.version ?? 0, pin?.version ?? 0);
    await scripts.call(
      'chats/fill',
      partitionOf(chat),
      { ...metaOf(chat), ...keysOf(chat), changes: keys.changes(chat) },
      {
        token: ticket,
        sequence: pack([
          String(sequence?.last_message_id ?? 0),
          String(changed),
          String(Math.max(row.incarnation, sequence?.incarnation ?? 0)),
          String(pin?.record ? unpack<[number]>(pin.record)[0] : 0),
        ]),
        profile: pack(row.profile),
        profile_version: row.version,
        kind: row.kind,
        bots: row.bots,
        ttl_ms: readBackTtlMs(context, partitionOf(chat)),
      },
    );
    return true;
  }

  async function refresh(chat: ChatRef): Promise<void> {
    const row = await load(chat);
    if (!row) return;
    await scripts.call(
      'chats/refresh',
      partitionOf(chat),
      { ...keysOf(chat), channel: keys.chatChannel(chat) },
      { profile: pack(row.profile), profile_version: row.version, kind: row.kind, bots: row.bots },
    );
  }

  const members = createMembers(context, control, forwarder, { fill, refresh });
  const names = createNames(context);

  return {
    ...members,
    fill,
    refresh,
    findByUsername: names.find,
    refreshName: names.refresh,
    async find(chat) {
      for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
        const found = await scripts.call(
          'chats/miss',
          partitionOf(chat),
          { ...metaOf(chat), ...keysOf(chat) },
          {
            token: uniqueText(),
          },
        );
        if (found.status === 'ok') {
          const bots = found.bots === '' ? [] : found.bots.split(',').map(Number);
          const kind = found.kind as ChatKind;
          return {
            ...{ chat, newest: found.seq, profile: unpack<Profile>(found.profile), bots, kind },
            pinned: found.pin,
          };
        }
        if (!(await fill(chat, found.ticket))) return null;
      }
      return fail('unavailable', { retry_after: 1 });
    },
    async openDirect(bot, user) {
      const chat = directChat(bot, user);
      if (await rows.openDirectChat(db, bot, user, await incarnationOf(partitionOf(chat)))) {
        await Promise.all([refresh(chat), control.refresh('chats', user)]);
      } else {
        await members.setBlocked(bot, user, false);
      }
    },
    async create(type, title, creator, { username, private: hidden = type === 'group' && !username } = {}) {
      const chat = { type, title, creator, username, private: hidden };
      const id = await rows.createChat(db, chat, (made) => incarnationOf(keys.partitions.of(made)));
      await Promise.all([
        control.refresh('member', id, creator),
        control.refresh('chats', creator),
        username === undefined ? undefined : names.refresh(id),
      ]);
      return sharedChat(id);
    },
    async showAction(chat, bot, action) {
      const member = keys.member(chat.id, bot);
      const key = keys.chat(chat);
      for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
        const result = await scripts.call(
          'chats/publish_action',
          partitionOf(chat),
          {
            meta: keys.meta(partitionOf(chat)),
            chat: key,
            ticket: keys.ticket(key),
            member,
            member_ticket: keys.ticket(member),
            channel: keys.chatChannel(chat),
          },
          { direct: isDirect(chat), hint: `${actionHint}${bot} ${action}`, token: uniqueText() },
        );
        if (result.status === 'ok') return;
        if (result.status === 'blocked') fail('bot_blocked');
        if (result.status === 'not_member')
          fail(result.kind === 'group' ? 'not_group_member' : 'not_channel_member');
        if (result.status === 'member_missing') await control.fill('member', chat.id, bot);
        if (result.status === 'chat_missing' && !(await fill(chat, result.ticket))) {
          fail(
            isDirect(chat) && (await control.read('user', chat.user)) ? 'cant_initiate' : 'chat_not_found',
          );
        }
      }
      fail('unavailable', { retry_after: 1 });
    },
    async member(chat, who) {
      return (await control.read('member', chat.id, who)) ?? { status: 'none', rights: {}, isBot: false };
    },
    async acquaintances(who, chat, ids) {
      const known = new Set<number>();
      const others: number[] = [];
      const look = async (id: number) => {
        if (id === who || (chat && id === chat.user)) return known.add(id);
        const list = await control.read('chats', id);
        if (list?.direct.includes(who)) return known.add(id);
        return list && others.push(id);
      };
      await Promise.all([...new Set(ids)].map(look));
      if (others.length === 0) return known;
      await takeLookUps(who, others.length);
      for (const id of await loadAcquaintances(db, who, others)) known.add(id);
      return known;
    },
    members: (chat, after, limit) => rows.loadMembers(db, chat.id, after, limit),
    async listOf(user) {
      const list = await control.read('chats', user);
      if (!list) return [];
      return [...list.direct.map((bot) => directChat(bot, user)), ...list.shared.map(sharedChat)];
    },
  };
}
