/**
 * Loads records that a script found missing from Postgres into Redis, with the script's fill ticket, and calls the
 * script again.
 */
import { type ErrorName, fail } from '../../errors.js';
import { loadMessages } from '../../postgres/chats/chats.js';
import type { WriteAccessCopies } from '../access/write_access.js';
import type { Chats } from '../chats/chats.js';
import { fillAttemptsMax, readBackTtlMs, type StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { type ChatRef, isDirect } from '../core/keys.js';
import type { Queues } from '../updates/queues.js';

/** The chat and caller of a script, and the message it affects. */
export interface Place {
  readonly chat: ChatRef;
  readonly who: { readonly id: number; readonly isBot: boolean };
  /** The message that the call changes, and the error if it does not exist. */
  readonly message?: { readonly id: number; readonly absent: ErrorName };
}

type Missing = 'chat_missing' | 'member_missing' | 'queue_missing' | 'access_missing' | 'message_missing';

export interface ReadBack {
  /**
   * Calls a script and loads missing records until nothing is missing. Errors: `chat_not_found`; `cant_initiate` when a
   * bot writes to a person who never started it; `bot_not_found` when a person writes to a deleted bot; the given error
   * for an absent message.
   */
  complete<R extends { readonly status: string }>(
    place: Place,
    call: () => Promise<R>,
  ): Promise<Exclude<R, { readonly status: Missing }>>;
  /** Loads one message. Returns false if Postgres has none, or only its tombstone. */
  message(chat: ChatRef, messageId: number, ticket: string): Promise<boolean>;
  /** Loads several messages with one statement, each with its ticket. Returns the ids that exist. */
  messages(chat: ChatRef, ids: readonly number[], tickets: readonly string[]): Promise<ReadonlySet<number>>;
}

export function createReadBack(
  context: StoreContext,
  parts: {
    readonly chats: Chats;
    readonly control: ControlCopies;
    readonly queues: Queues;
    readonly access: WriteAccessCopies;
  },
): ReadBack {
  const { shards, scripts, keys } = context;
  const { chats, control, queues, access } = parts;

  async function fillChat({ chat, who }: Place, ticket: string): Promise<void> {
    if (await chats.fill(chat, ticket)) return;
    const person = who.isBot && isDirect(chat) && (await control.read('user', chat.user));
    fail(person ? 'cant_initiate' : 'chat_not_found');
  }

  /** Loads messages with one statement; returns the ids that exist. */
  async function fillMessages(
    chat: ChatRef,
    ids: readonly number[],
    tickets: readonly string[],
  ): Promise<Set<number>> {
    const partition = keys.partitions.of(chat.id);
    const rows = await loadMessages(shards.of(partition).db, chat.id, chat.user, ids);
    const filled = rows.map(async ({ message_id, record }) => {
      if (!record) return [];
      const message = keys.message(chat, message_id);
      const token = tickets[ids.indexOf(message_id)] as string;
      await scripts.call(
        'messages/fill',
        partition,
        { message, ticket: keys.ticket(message) },
        { token, record, ttl_ms: readBackTtlMs(context, partition) },
      );
      return [message_id];
    });
    return new Set((await Promise.all(filled)).flat());
  }

  const fillMessage = async (chat: ChatRef, messageId: number, ticket: string): Promise<boolean> =>
    (await fillMessages(chat, [messageId], [ticket])).has(messageId);

  /** Loads the records that a script reported as missing. Returns false if its status reports nothing missing. */
  async function fill(
    place: Place,
    { status, ticket = '', incarnation = 0 }: { status: string; ticket?: string; incarnation?: number },
  ): Promise<boolean> {
    const { chat, who, message } = place;
    switch (status) {
      case 'chat_missing':
        await fillChat(place, ticket);
        return true;
      case 'member_missing':
        await control.fill('member', chat.id, who.id);
        return true;
      case 'queue_missing':
        // The queue of a deleted bot must not be opened again.
        if ((await control.read('bot', chat.id))?.state === 'deleted') fail('bot_not_found');
        await queues.open(chat.id);
        return true;
      case 'access_missing':
        if (!(await access.fill(chat, incarnation))) fail('bot_not_found');
        return true;
      case 'message_missing':
        if (message && !(await fillMessage(chat, message.id, ticket))) fail(message.absent);
        return true;
      default:
        return false;
    }
  }

  async function persist<R extends { readonly status: string }>(
    place: Place,
    call: () => Promise<R>,
    first: R,
  ): Promise<R> {
    let result = first;
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      if (result.status === 'ok' || !(await fill(place, result))) return result;
      result = await call();
    }
    return fail('unavailable', { retry_after: 1 });
  }

  return {
    message: fillMessage,
    messages: fillMessages,
    complete(place, call) {
      // Fast path without an extra promise, for calls that find everything in Redis.
      return call().then((result) =>
        result.status === 'ok' ? result : persist(place, call, result),
      ) as never;
    },
  };
}
