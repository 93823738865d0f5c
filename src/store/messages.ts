/** Messages: sending, editing, deleting and reading, on hot data in one round trip, with the read-back of what is cold. */
import { type ErrorName, fail } from '../errors.js';
import { loadMessages } from '../postgres/chats.js';
import type { Chats } from './chats.js';
import {
  type Content,
  type InlineKeyboard,
  type MessageRecord,
  messageKinds,
  type Origin,
  type Profile,
  pack,
  packMarkup,
  packMessageTail,
} from './codec.js';
import { fillAttemptsMax, type StoreContext, uniqueText } from './context.js';
import { type ChatRef, chatText, isDirect } from './keys.js';
import type { ReadBack } from './read_back.js';
import { type StoredMessage, storedMessage } from './stored_message.js';
import type { Updates } from './updates.js';

export interface Sender {
  readonly id: number;
  readonly isBot: boolean;
  readonly profile: Profile;
}

export interface NewMessage {
  readonly content: Content;
  readonly markup: InlineKeyboard | null;
  readonly flags: number;
  /** id of the message that this one answers; 0 for none */
  readonly replyTo: number;
  /** answers a reply whose target is gone by sending without it */
  readonly allowMissingReply: boolean;
}

export type Edit =
  | { readonly what: 'text'; readonly content: Content; readonly markup: InlineKeyboard | null }
  | { readonly what: 'markup'; readonly markup: InlineKeyboard | null };

export interface Messages {
  /** Errors: `chat_not_found`, `not_group_member`, `reply_not_found`. */
  send(chat: ChatRef, sender: Sender, message: NewMessage): Promise<StoredMessage>;
  /** Refusals in the order of behaviour §7. */
  edit(chat: ChatRef, editor: Sender, messageId: number, edit: Edit): Promise<StoredMessage>;
  /** Errors: `message_to_delete_not_found`, `message_cant_be_deleted`. */
  remove(chat: ChatRef, who: Sender, messageId: number): Promise<void>;
  /** Newest first, below `before` (0: from the newest). Null when there is no such chat. */
  list(chat: ChatRef, before: number, limit: number): Promise<StoredMessage[] | null>;
}

const editErrors = {
  not_found: 'message_to_edit_not_found',
  cant_be_edited: 'message_cant_be_edited',
  no_text: 'no_text_to_edit',
  not_modified: 'message_not_modified',
} as const satisfies Record<string, ErrorName>;

export const overloaded = (): never => fail('unavailable', { retry_after: 1 });

export function createMessages(
  context: StoreContext,
  chats: Chats,
  readBack: ReadBack,
  updates: Updates,
): Messages {
  const { db, scripts, keys } = context;
  const partitionOf = (chat: ChatRef) => keys.partitions.of(chat.id);
  const notMember = (sender: Sender): never => fail(sender.isBot ? 'not_group_member' : 'not_chat_member');

  const commonKeys = (chat: ChatRef, partition: number, request: string) => {
    const key = keys.chat(chat);
    return {
      meta: keys.meta(partition),
      journal: keys.journal(partition),
      chat: key,
      ticket: keys.ticket(key),
      request: keys.request(partition, request),
      changes: keys.changes(chat),
      channel: keys.chatChannel(chat),
    };
  };
  const queueKeys = (bot: number) => ({
    queue_state: keys.queueState(bot),
    queue: keys.queue(bot),
    bot_channel: keys.botChannel(bot),
  });
  const memberKeys = (chat: ChatRef, partition: number, who: number) => {
    const member = keys.member(chat.id, who);
    return { outbox: keys.outbox(partition), member, member_ticket: keys.ticket(member) };
  };

  async function send(chat: ChatRef, sender: Sender, message: NewMessage): Promise<StoredMessage> {
    const partition = partitionOf(chat);
    const request = uniqueText();
    const chatName = chatText(chat);
    const direct = isDirect(chat);
    let replyTo = message.replyTo;
    const makeTail = () => {
      const origin: Origin = {
        ...(direct ? {} : { from: sender.profile }),
        ...(replyTo === 0 ? {} : { reply: replyTo }),
      };
      const fixed = {
        sender: sender.id,
        kind: messageKinds.text,
        flags: message.flags,
        content: message.content,
        markup: message.markup,
        origin,
      };
      return { fixed, tail: packMessageTail(fixed) };
    };
    let { fixed, tail } = makeTail();
    const dropReply = () => {
      if (!message.allowMissingReply) fail('reply_not_found');
      replyTo = 0;
      ({ fixed, tail } = makeTail());
    };
    // A bot's own message makes no update for the bot of a direct chat.
    const from = direct && sender.isBot ? '' : pack(sender.profile);
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const args = {
        chat: chatName,
        from,
        tail,
        reply_to: replyTo === 0 ? '' : String(replyTo),
        token: uniqueText(),
      };
      const shared = commonKeys(chat, partition, request);
      const result = direct
        ? await scripts.call(
            'messages/send_direct',
            partition,
            { ...shared, ...queueKeys(chat.id), message: keys.messages(chat) },
            args,
          )
        : await scripts.call(
            'messages/send_shared',
            partition,
            { ...shared, ...memberKeys(chat, partition, sender.id), message: keys.messages(chat) },
            { ...args, sender: String(sender.id) },
          );
      switch (result.status) {
        case 'ok': {
          if ('forward' in result && result.forward) updates.forward(partition);
          const record: MessageRecord = { ...fixed, version: 0, date: result.date, editedAt: 0 };
          return storedMessage(chat, result.message_id, record, result.peer, result.reply);
        }
        case 'chat_missing':
          await readBack.chat(chat, result.ticket, sender.isBot);
          break;
        case 'member_missing':
          await readBack.member(chat, sender.id);
          break;
        case 'queue_missing':
          await updates.openQueue(chat.id);
          break;
        case 'reply_missing':
          if (!(await readBack.message(chat, replyTo, result.ticket))) dropReply();
          break;
        case 'reply_not_found':
          dropReply();
          break;
        case 'not_member':
          return notMember(sender);
        case 'outbox_full':
          fail('too_many_requests', { retry_after: 1 });
      }
    }
    return overloaded();
  }

  async function edit(
    chat: ChatRef,
    editor: Sender,
    messageId: number,
    change: Edit,
  ): Promise<StoredMessage> {
    const partition = partitionOf(chat);
    const request = uniqueText();
    const direct = isDirect(chat);
    const content = change.what === 'text' ? pack(change.content) : Buffer.alloc(0);
    const markup = packMarkup(change.markup);
    const message = keys.message(chat, messageId);
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const at = {
        ...commonKeys(chat, partition, request),
        message,
        message_ticket: keys.ticket(message),
        sibling: keys.messages(chat),
      };
      const args = {
        edit: pack([chatText(chat), String(messageId), String(editor.id), change.what, uniqueText()]),
        content,
        markup,
      };
      const from = pack(editor.profile);
      const result = direct
        ? await scripts.call(
            'messages/edit_direct',
            partition,
            { ...at, ...queueKeys(chat.id) },
            { ...args, from: editor.isBot ? '' : from },
          )
        : await scripts.call(
            'messages/edit_shared',
            partition,
            { ...at, ...memberKeys(chat, partition, editor.id) },
            { ...args, from },
          );
      switch (result.status) {
        case 'ok':
          if ('forward' in result && result.forward) updates.forward(partition);
          return storedMessage(chat, messageId, result.record, result.peer, result.reply);
        case 'chat_missing':
          await readBack.chat(chat, result.ticket, editor.isBot);
          break;
        case 'message_missing':
          if (!(await readBack.message(chat, messageId, result.ticket))) fail('message_to_edit_not_found');
          break;
        case 'member_missing':
          await readBack.member(chat, editor.id);
          break;
        case 'queue_missing':
          await updates.openQueue(chat.id);
          break;
        case 'not_member':
          return notMember(editor);
        case 'outbox_full':
        case 'too_often':
          return fail('too_many_requests', { retry_after: 1 });
        default:
          fail(editErrors[result.status]);
      }
    }
    return overloaded();
  }

  async function remove(chat: ChatRef, who: Sender, messageId: number): Promise<void> {
    const partition = partitionOf(chat);
    const request = uniqueText();
    const message = keys.message(chat, messageId);
    const { outbox: _, ...member } = memberKeys(chat, partition, who.id);
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const result = await scripts.call(
        'messages/delete',
        partition,
        { ...commonKeys(chat, partition, request), ...member, message, message_ticket: keys.ticket(message) },
        {
          chat: chatText(chat),
          message_id: String(messageId),
          who: String(who.id),
          direct: isDirect(chat),
          token: uniqueText(),
        },
      );
      switch (result.status) {
        case 'ok':
          return;
        case 'chat_missing':
          await readBack.chat(chat, result.ticket, who.isBot);
          break;
        case 'member_missing':
          await readBack.member(chat, who.id);
          break;
        case 'message_missing':
          if (!(await readBack.message(chat, messageId, result.ticket))) fail('message_to_delete_not_found');
          break;
        case 'not_member':
          return notMember(who);
        case 'not_found':
          return fail('message_to_delete_not_found');
        case 'cant_be_deleted':
          return fail('message_cant_be_deleted');
      }
    }
    return overloaded();
  }

  /** One page of rows from Redis, with what is cold from Postgres. */
  async function readRange(chat: ChatRef, before: number, limit: number) {
    for (let attempt = 0; attempt < 2; attempt++) {
      const page = await scripts.call(
        'messages/read_range',
        partitionOf(chat),
        { chat: keys.chat(chat), message: keys.messages(chat) },
        { before, limit },
      );
      if (page.status === 'ok') {
        const rows = page.rows as Array<Buffer | null>;
        const cold = rows.flatMap((row, i) => (row === null ? [page.first - i] : []));
        const readBack = new Map(
          cold.length === 0
            ? []
            : (await loadMessages(db, chat.id, chat.user, cold)).map((row) => [row.message_id, row.record]),
        );
        return { page, rows: rows.map((row, i) => row ?? readBack.get(page.first - i) ?? null) };
      }
      if (!(await chats.find(chat))) return null;
    }
    return overloaded();
  }

  async function list(chat: ChatRef, before: number, limit: number): Promise<StoredMessage[] | null> {
    const out: StoredMessage[] = [];
    let cursor = before;
    // Deleted messages leave holes: read on until the page is full, within a bound.
    for (let pages = 0; pages < 20; pages++) {
      const range = await readRange(chat, cursor, limit);
      if (range === null) return null;
      for (const [i, bytes] of range.rows.entries()) {
        if (bytes === null || out.length === limit) continue;
        const message = storedMessage(chat, range.page.first - i, bytes, range.page.peer, null);
        if (message.record.kind !== messageKinds.deleted) out.push(message);
      }
      cursor = range.page.first - range.rows.length + 1;
      if (out.length >= limit || cursor <= 1 || range.rows.length === 0) break;
    }
    return out;
  }

  return { send, edit, remove, list };
}
