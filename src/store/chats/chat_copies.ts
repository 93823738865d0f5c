/** Manages the records of chats in Redis. They are copies of control rows, message sequences and pins in Postgres. */
import { fail } from '../../errors.js';
import { loadNames } from '../../postgres/accounts/users.js';
import * as rows from '../../postgres/chats/chats.js';
import { type Profile, pack, unpack } from '../core/codec.js';
import { fillAttemptsMax, readBackTtlMs, type StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { type ChatRef, isDirect } from '../core/keys.js';
import { namesProfile } from '../core/profiles.js';

export interface ChatState {
  readonly chat: ChatRef;
  readonly newest: number;
  /** In a direct chat, the profile of the user. In other chats, the profile of the chat. */
  readonly profile: Profile;
  readonly bots: readonly number[];
  readonly kind: ChatKind;
  readonly pinned: number;
  /** The ids of messages whose reply keyboards are shown, newest first. */
  readonly keyboards: readonly number[];
}

/**
 * The kind of a chat. A `private` chat is a channel that only members can see. A `blocked` chat is a direct chat whose
 * user blocked the bot. A `person` chat is a chat of two people. A `closed` chat is also a chat of two people, but one
 * of them blocked the other or deleted their account.
 */
export type ChatKind = 'direct' | 'blocked' | 'group' | 'channel' | 'private' | 'person' | 'closed';

const idsIn = (list: string): number[] => (list === '' ? [] : list.split(',').map(Number));

export class ChatCopies {
  protected readonly context: StoreContext;
  protected readonly control: ControlCopies;

  constructor(context: StoreContext, control: ControlCopies) {
    this.context = context;
    this.control = control;
  }

  /** Returns a chat, or null if it does not exist. If the chat's record is not in Redis, copies it from Postgres. */
  async find(chat: ChatRef): Promise<ChatState | null> {
    const { scripts } = this.context;
    const { partition, at } = this.#place(chat);
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const found = await scripts.call('chats/miss', partition, at, { token: this.context.uniqueText() });
      if (found.status === 'ok')
        return {
          chat,
          newest: found.seq,
          profile: unpack<Profile>(found.profile),
          bots: idsIn(found.bots),
          kind: found.kind as ChatKind,
          pinned: found.pin,
          keyboards: idsIn(found.keyboards),
        };
      if (!(await this.fill(chat, found.ticket))) return null;
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /**
   * Copies a chat's record from Postgres to Redis. Call this after a script reported that the record is missing.
   * `ticket` is the script's fill ticket. Returns false if the chat does not exist.
   */
  async fill(chat: ChatRef, ticket: string): Promise<boolean> {
    const { shards, scripts, keys } = this.context;
    const { partition, at } = this.#place(chat);
    const shard = shards.at(partition);
    const [row, sequence, pin] = await Promise.all([
      this.#load(chat),
      rows.loadSequence(shard, chat.id, chat.user),
      rows.loadPin(shard, chat.id, chat.user),
    ]);
    if (!row) return false;
    const changed = Math.max(sequence?.version ?? 0, pin?.version ?? 0);
    const [pinned = 0, keyboards = ''] = pin?.record ? unpack<[number?, string?]>(pin.record) : [];
    await scripts.call(
      'chats/fill',
      partition,
      { ...at, changes: keys.changes(chat) },
      {
        token: ticket,
        sequence: pack([
          String(sequence?.last_message_id ?? 0),
          String(changed),
          String(Math.max(row.incarnation, sequence?.incarnation ?? 0)),
          String(pinned),
          row.permissions,
          keyboards,
        ]),
        profile: pack(row.profile),
        profile_version: row.version,
        kind: row.kind,
        bots: row.bots,
        ttl_ms: readBackTtlMs(this.context, partition),
      },
    );
    return true;
  }

  async refresh(chat: ChatRef): Promise<void> {
    const { scripts, keys } = this.context;
    const { partition, at } = this.#place(chat);
    const row = await this.#load(chat);
    if (!row) return;
    const { version, kind, bots, permissions } = row;
    await scripts.call(
      'chats/refresh',
      partition,
      { ...at, channel: keys.chatChannel(chat) },
      { profile: pack(row.profile), profile_version: version, kind, bots, permissions },
    );
  }

  #place(chat: ChatRef) {
    const { keys } = this.context;
    const partition = keys.partitions.of(chat.id);
    const record = keys.chat(chat);
    return { partition, at: { meta: keys.meta(partition), chat: record, ticket: keys.ticket(record) } };
  }

  #load(chat: ChatRef) {
    return isDirect(chat) ? this.#loadDirect(chat) : this.#loadShared(chat);
  }

  /**
   * Loads the user's name from Postgres, because the copy of the user in Redis may be older than this version of the
   * chat. After two quick changes of the name, the chat would otherwise keep the first new name.
   */
  async #loadDirect({ id, user }: ChatRef) {
    const row = await rows.loadDirectChat(this.context.db, id, user);
    if (!row) return null;
    const { incarnation, version, person } = row;
    const kind: ChatKind = row.blocked ? 'blocked' : 'direct';
    // If the user's account was deleted, the chat has no name until it is erased.
    const profile: Profile = person ? namesProfile(person) : { id: user, n: '' };
    return { incarnation, version, profile, kind, bots: '', permissions: '' };
  }

  /**
   * Stores the profiles of both people in the record, so that reading the chat needs no other record. Loads both
   * profiles from Postgres, because copies of people in Redis may be older than this version of the chat.
   */
  async #loadPeople(row: rows.ChatRow) {
    const { id, incarnation, version, gone } = row;
    const ids = [row.opener_id ?? 0, row.peer_id ?? 0] as const;
    const names = await loadNames(this.context.db, ids);
    const profileOf = (person: number): Profile => {
      const found = names.find((each) => each.id === person);
      return found ? namesProfile(found) : { id: person, n: '' };
    };
    const profile: Profile = { id, t: 'person', n: '', pair: [profileOf(ids[0]), profileOf(ids[1])] };
    const kind: ChatKind = row.blocked || gone.length > 0 ? 'closed' : 'person';
    return { incarnation, profile, version, kind, bots: '', permissions: '' };
  }

  async #loadShared({ id }: ChatRef) {
    const row = await rows.loadChat(this.context.db, id);
    if (!row) return null;
    const { type, incarnation, version, permissions } = row;
    if (type === 'person') return this.#loadPeople(row);
    const profile: Profile = {
      id,
      t: type,
      n: row.title,
      m: row.member_count,
      ...(row.username === null ? {} : { u: row.username }),
    };

    const kind: ChatKind = type === 'channel' && row.private ? 'private' : type;
    return { incarnation, profile, version, kind, bots: row.bots.join(','), permissions };
  }
}
