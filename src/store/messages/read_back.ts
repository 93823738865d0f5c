/**
 * Loads records that a script found missing in Redis. Reads them from Postgres, stores them in Redis with the script's
 * fill ticket, and calls the script again.
 */
import { type ErrorName, fail } from '../../errors.js';
import { loadMessages } from '../../postgres/chats/chats.js';
import type { WriteAccessCopies } from '../access/write_access.js';
import type { Chats } from '../chats/chats.js';
import { fillAttemptsMax, readBackTtlMs, type StoreContext } from '../core/context.js';
import type { ControlCopies } from '../core/control.js';
import { type ChatRef, isDirect } from '../core/keys.js';
import type { Queues } from '../updates/queues.js';

/** The chat, the caller, and the message that the call affects. */
export interface Place {
  readonly chat: ChatRef;
  readonly who: { readonly id: number; readonly isBot: boolean };
  readonly message?: { readonly id: number; readonly absent: ErrorName };
}

type Missing = 'chat_missing' | 'member_missing' | 'queue_missing' | 'access_missing' | 'message_missing';

interface Parts {
  readonly chats: Pick<Chats, 'fill'>;
  readonly control: ControlCopies;
  readonly queues: Queues;
  readonly access: WriteAccessCopies;
}

export class ReadBack {
  readonly #context: StoreContext;
  readonly #parts: Parts;

  constructor(context: StoreContext, parts: Parts) {
    this.#context = context;
    this.#parts = parts;
  }

  /**
   * Calls a script, and loads missing records until nothing is missing. Each attempt gets a new token for its tickets.
   * With the token of an earlier attempt, the script would recreate a ticket that a write has removed. A fill that
   * loaded the record before the write could then store an outdated record. Errors: `chat_not_found`, `cant_initiate`
   * if a bot writes to a person who never started it, `bot_not_found` if a person writes to a deleted bot, and the
   * given error for a message that does not exist.
   */
  complete<P extends Promise<{ readonly status: string }>>(
    place: Place,
    call: (token: string) => P,
  ): Promise<Exclude<Awaited<P>, { readonly status: Missing }>> {
    // A call that finds everything in Redis creates no additional promise.
    return call(this.#context.uniqueText()).then((result) =>
      result.status === 'ok' ? result : this.#persist(place, call, result),
    ) as never;
  }

  /** Loads one message into Redis. Returns false if Postgres has no message or a tombstone. */
  async message(chat: ChatRef, messageId: number, ticket: string): Promise<boolean> {
    return (await this.messages(chat, [messageId], [ticket])).has(messageId);
  }

  /** Loads several messages into Redis with one SQL statement. Returns the ids that exist. */
  async messages(chat: ChatRef, ids: readonly number[], tickets: readonly string[]): Promise<Set<number>> {
    const { shards, scripts, keys } = this.#context;
    const partition = keys.partitions.of(chat.id);
    const ttl_ms = readBackTtlMs(this.#context, partition);
    const rows = await loadMessages(shards.at(partition), chat.id, chat.user, ids);
    const filled = rows.map(async ({ message_id, record }) => {
      if (!record) return [];
      const message = keys.message(chat, message_id);
      const at = { meta: keys.meta(partition), message, ticket: keys.ticket(message) };
      const args = { token: tickets[ids.indexOf(message_id)] as string, record, ttl_ms };
      await scripts.call('messages/fill', partition, at, args);
      return [message_id];
    });
    return new Set((await Promise.all(filled)).flat());
  }

  /** Loads the records that a script reported as missing. Returns false if nothing is missing. */
  async #fill(
    place: Place,
    { status, ticket = '', incarnation = 0 }: { status: string; ticket?: string; incarnation?: number },
  ): Promise<boolean> {
    const { chat, who, message } = place;
    const { control, queues, access } = this.#parts;
    switch (status) {
      case 'chat_missing':
        await this.#fillChat(place, ticket);
        return true;
      case 'member_missing':
        await control.fill('member', chat.id, who.id);
        return true;
      case 'queue_missing':
        // Opens the queue, unless the bot was deleted.
        if (!(await queues.open(chat.id))) fail('bot_not_found');
        return true;
      case 'access_missing':
        if (!(await access.fill(chat, incarnation))) fail('bot_not_found');
        return true;
      case 'message_missing':
        if (message && !(await this.message(chat, message.id, ticket))) fail(message.absent);
        return true;
      default:
        return false;
    }
  }

  async #persist<R extends { readonly status: string }>(
    place: Place,
    call: (token: string) => Promise<R>,
    first: R,
  ): Promise<R> {
    let result = first;
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      if (result.status === 'ok' || !(await this.#fill(place, result))) return result;
      result = await call(this.#context.uniqueText());
    }
    return fail('unavailable', { retry_after: 1 });
  }

  async #fillChat({ chat, who }: Place, ticket: string): Promise<void> {
    if (await this.#parts.chats.fill(chat, ticket)) return;
    const person = who.isBot && isDirect(chat) && (await this.#parts.control.read('user', chat.user));
    fail(person ? 'cant_initiate' : 'chat_not_found');
  }
}
