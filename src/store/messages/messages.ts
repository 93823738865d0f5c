/** Sends, edits and deletes messages. Each call takes one round trip if the data is in Redis. */
import { ApiError, type ErrorName, fail } from '../../errors.js';
import { ruleLimits } from '../../rules/limits.js';
import {
  type Content,
  type InlineKeyboard,
  kindOfContent,
  type Origin,
  type Profile,
  pack,
  packMessageTail,
} from '../core/codec.js';
import type { StoreContext } from '../core/context.js';
import { type ChatRef, chatText, isDirect } from '../core/keys.js';
import { directKeys, sharedKeys, toUserKeys, withMessage } from '../core/script_keys.js';
import { type StoredMessage, storedMessage } from '../core/stored_message.js';
import type { InlinePlace } from '../inline/inline_ids.js';
import { storeLimits } from '../limits.js';
import type { Forwarder } from '../updates/forwarder.js';
import { assertBatch, Batches, type Sender } from './batches.js';
import { type Edit, runEdit } from './edit_script.js';
import type { PendingEdits } from './pending_edits.js';
import type { ReadBack } from './read_back.js';
import { refused } from './refusals.js';
import { type Given, isLookUp, type Repeats } from './repeats.js';

export type { Edit, Sender };

export interface NewMessage {
  readonly content: Content;
  readonly markup: InlineKeyboard | null;
  readonly flags: number;
  /** The id of the message to which this message replies, or 0. */
  readonly replyTo: number;
  readonly origin?: Pick<Origin, 'forward' | 'group' | 'keyboard' | 'via'>;
  /** Whether to send the message without the reply if the replied-to message no longer exists. */
  readonly allowMissingReply: boolean;
}

const sendErrors = {
  reply_missing: 'reply_not_found',
  reply_not_found: 'reply_not_found',
  not_allowed: 'posting_not_allowed',
} as const satisfies Record<string, ErrorName>;

const editErrors = {
  not_found: 'message_to_edit_not_found',
  cant_be_edited: 'message_cant_be_edited',
  no_text: 'no_text_to_edit',
  no_caption: 'no_caption_to_edit',
  no_media: 'media_cant_be_edited',
  no_live: 'no_live_location_to_edit',
  wrong_period: 'live_period_wrong',
  not_modified: 'message_not_modified',
  // A script answers `not_pending` only when it applies a pending edit that is due.
  not_pending: 'message_cant_be_edited',
} as const satisfies Record<string, ErrorName>;

/** The message as it is after the edit, even if the edit is still pending. */
export type EditedMessage = StoredMessage & { readonly isPending?: true };

const nothing = Buffer.alloc(0);
const noOrigin: Origin = {};

/** Returns the origin of a message. Only in groups and channels does it contain a copy of the sender's profile. */
function originOf(from: Profile | null, replyTo: number): Origin {
  if (from === null) return replyTo === 0 ? noOrigin : { reply: replyTo };
  return replyTo === 0 ? { from } : { from, reply: replyTo };
}

/** Builds a new record without the fields that the script adds. `replyTo` is a message id, or 0. */
function newRecord(chat: ChatRef, sender: Sender, message: NewMessage, replyTo: number) {
  const origin = originOf(isDirect(chat) ? null : sender.profile, replyTo);
  return {
    sender: sender.id,
    kind: kindOfContent(message.content),
    flags: message.flags,
    content: message.content,
    markup: message.markup,
    origin: message.origin === undefined ? origin : { ...origin, ...message.origin },
    // The values of the following fields do not matter, because the script sets them.
    version: 0,
    date: 0,
    editedAt: 0,
    post: 0,
  };
}

function keptOf(chat: ChatRef, [message]: readonly NewMessage[], keep: boolean): string {
  const record = keep ? 'r' : '';
  const keyboard = message?.origin?.keyboard;
  if (keyboard === undefined) return record;
  return record + (keyboard.selective && !isDirect(chat) ? 's' : 'k');
}

export class Messages extends Batches {
  readonly #forwarder: Forwarder;
  readonly #repeats: Repeats;
  readonly #pendingEdits: PendingEdits;

  constructor(
    context: StoreContext,
    readBack: ReadBack,
    forwarder: Forwarder,
    repeats: Repeats,
    pendingEdits: PendingEdits,
  ) {
    super(context, readBack);
    this.#forwarder = forwarder;
    this.#repeats = repeats;
    this.#pendingEdits = pendingEdits;
  }

  /**
   * Sends a message. Errors: `chat_not_found`, `cant_initiate`, `bot_blocked`, `not_group_member`,
   * `not_channel_member`, `not_chat_member`, `posting_not_allowed`, `reply_not_found`, `cant_write_to_bot`,
   * `bot_not_found`.
   */
  async send(chat: ChatRef, sender: Sender, given: Given<NewMessage>): Promise<StoredMessage> {
    const request = this.context.requestId();
    const before = isLookUp(given) ? await this.#repeats.sent(chat, request) : null;
    if (before) return before;
    const message = isLookUp(given) ? await given() : given;
    const [sent] = await this.#sendAll(chat, sender, [message], request, true);
    return sent as StoredMessage;
  }

  /**
   * Sends 1 to `limits.messages_batch_max` messages in one step, all or none, with consecutive ids in the given order.
   * Their total size is limited to `storeLimits.messages_batch_bytes_max`. All of them reply to the message to which
   * the first one replies. If the call is repeated, the returned `messages` omit messages that have been deleted since
   * then. Throws the errors of `send`.
   */
  async sendMany(chat: ChatRef, sender: Sender, given: Given<readonly NewMessage[]>) {
    const request = this.context.requestId();
    const before = isLookUp(given) ? await this.#repeats.sentMany(chat, request) : null;
    if (before) return before;
    const messages = isLookUp(given) ? await given() : given;
    assertBatch(messages.length);
    const sent = await this.#sendAll(chat, sender, messages, request, false);
    return { ids: sent.map(({ id }) => id), messages: sent };
  }

  /**
   * Edits the message that `find` returns. The message must be in `partition`. If an earlier attempt already made this
   * edit, does not call `find`.
   */
  async editFound(
    partition: number,
    editor: Sender,
    find: () => Promise<{ readonly chat: ChatRef; readonly messageId: number; readonly edit: Edit }>,
  ): Promise<StoredMessage> {
    const request = this.context.requestId();
    const edited = await this.#repeats.edited(partition, request);
    if (edited) return edited;
    const found = await find();
    return this.#applyEdit(request, found.chat, editor, found.messageId, found.edit);
  }

  /**
   * Edits an inline message, which a person sent from this bot's results. The bot need not be in the chat, and does not
   * learn whether the chat exists. If `coalesceFor` (the bot's owner) is given, the edit may become pending. Errors:
   * `inline_message_invalid`, and the errors of `edit`.
   */
  async editInline(
    bot: Sender,
    { chat, messageId }: InlinePlace,
    given: Given<Edit>,
    coalesceFor: number | null = null,
  ): Promise<void> {
    const request = this.context.requestId();
    if (await this.#repeats.edited(this.context.keys.partitions.of(chat.id), request)) return;
    const edit = isLookUp(given) ? await given() : given;
    try {
      await this.#applyEdit(request, chat, bot, messageId, edit, { isInline: true, coalesceFor });
    } catch (error) {
      const { kind } = error instanceof ApiError ? error : {};
      if (kind === 'chat_not_found' || kind === 'cant_initiate' || kind === editErrors.not_found)
        fail('inline_message_invalid');
      throw error;
    }
  }

  /** Edits a message. Errors are checked in the order of behaviour §7. */
  edit(chat: ChatRef, editor: Sender, messageId: number, given: Given<Edit>) {
    if (!isLookUp(given)) return this.#applyEdit(this.context.requestId(), chat, editor, messageId, given);
    return this.editFound(this.context.keys.partitions.of(chat.id), editor, async () => ({
      chat,
      messageId,
      edit: await given(),
    }));
  }

  /**
   * Edits a message. If the message was edited less than a second ago, the edit becomes pending. It is applied a second
   * after the last edit, unless a later edit replaces it. `owner` is the bot's owner. Throws the errors of `edit`.
   * Throws `too_many_requests` only if too many edits of this owner or of all owners are pending, or if the call is
   * durable.
   */
  editCoalesced(
    chat: ChatRef,
    editor: Sender,
    messageId: number,
    change: Edit,
    owner: number,
  ): Promise<EditedMessage> {
    return this.#applyEdit(this.context.requestId(), chat, editor, messageId, change, { coalesceFor: owner });
  }

  /** Deletes a message. Errors: `message_to_delete_not_found`, `message_cant_be_deleted`. */
  async remove(chat: ChatRef, who: Sender, messageId: number): Promise<void> {
    const { scripts, keys, requestId } = this.context;
    const at = withMessage(keys, sharedKeys(keys, chat, requestId(), who.id), chat, messageId);
    const args = {
      chat: chatText(chat),
      message_id: String(messageId),
      who: String(who.id),
      direct: isDirect(chat),
    };
    const place = { chat, who, message: { id: messageId, absent: 'message_to_delete_not_found' } } as const;
    const result = await this.readBack.complete(place, (token) =>
      scripts.call('messages/delete', keys.partitions.of(chat.id), at, { token, ...args }),
    );
    if (result.status !== 'ok')
      refused(who, result, {
        not_found: 'message_to_delete_not_found',
        cant_be_deleted: 'message_cant_be_deleted',
      });
  }

  /** Sends messages in one step. All of them reply to the message to which the first one replies. */
  async #sendAll(
    chat: ChatRef,
    sender: Sender,
    messages: readonly NewMessage[],
    request: string,
    keep: boolean,
  ) {
    const { replyTo, allowMissingReply } = messages[0] as NewMessage;
    let result = await this.#trySend(chat, sender, messages, replyTo, request, keep);
    if (result.status === 'reply_missing' && (await this.readBack.message(chat, replyTo, result.ticket))) {
      result = await this.#trySend(chat, sender, messages, replyTo, request, keep);
    }
    if ((result.status === 'reply_missing' || result.status === 'reply_not_found') && allowMissingReply) {
      result = await this.#trySend(chat, sender, messages, 0, request, keep);
    }
    return result.status === 'ok' ? result.sent : refused(sender, result, sendErrors);
  }

  /**
   * Makes one attempt to send messages that all reply to the same message or to none. `request` makes it safe to repeat
   * the attempt. If `keep` is true and a single message is sent, a repeated attempt returns this message even if it was
   * deleted after the first attempt.
   */
  async #trySend(
    chat: ChatRef,
    sender: Sender,
    messages: readonly NewMessage[],
    replyTo: number,
    request: string,
    keep: boolean,
  ) {
    const { scripts, keys } = this.context;
    const partition = keys.partitions.of(chat.id);
    const direct = isDirect(chat);
    const fixed = messages.map((message) => newRecord(chat, sender, message, replyTo));
    const tails = fixed.map(packMessageTail);
    const bytes = tails.reduce((sum, tail) => sum + tail.length, 0);
    if (bytes > storeLimits.messages_batch_bytes_max) fail('too_many_message_ids');
    const args = {
      chat: chatText(chat),
      sender: String(sender.id),
      reply_to: replyTo === 0 ? '' : String(replyTo),
      from: direct && sender.isBot ? nothing : pack(sender.profile),
      partition: String(partition),
      keep: keptOf(chat, messages, keep),
      tails,
      token: '',
    };
    const result = await this.readBack.complete({ chat, who: sender }, (token) => {
      args.token = token;
      if (!direct) {
        const at = sharedKeys(keys, chat, request, sender.id);
        return scripts.call('messages/send_shared', partition, at, args);
      }
      return sender.isBot
        ? scripts.call('messages/send_to_user', partition, toUserKeys(keys, chat, request), args)
        : scripts.call('messages/send_to_bot', partition, directKeys(keys, chat, request), args);
    });
    if (result.status !== 'ok') return result;
    if ('wake' in result || 'forward' in result) this.#forwarder.follow(chat.id, result);
    const firstPost = 'post' in result ? result.post : 0;
    const sent = fixed.map((record, i) => {
      record.date = result.date;
      record.post = firstPost === 0 ? 0 : firstPost + i * ruleLimits.partitions_max;
      return storedMessage(chat, result.first + i, record, result.peer, result.reply);
    });
    return { status: 'ok' as const, sent };
  }

  async #applyEdit(
    request: string,
    chat: ChatRef,
    editor: Sender,
    messageId: number,
    change: Edit,
    {
      isInline = false,
      coalesceFor = null,
    }: { readonly isInline?: boolean; readonly coalesceFor?: number | null } = {},
  ): Promise<EditedMessage> {
    // A durable call's edit never becomes pending, because a pending edit is only in Redis.
    const owner = this.context.durable ? null : coalesceFor;
    const call = { request, chat, editor, messageId, isInline, change, coalesceFor: owner };
    const result = await runEdit(this.context, this.readBack, call);
    if (result.status !== 'ok') return refused(editor, result, editErrors);
    const edited = storedMessage(chat, messageId, result.record, result.peer, result.reply);
    if (result.wait_ms !== null) {
      this.#pendingEdits.follow(this.context.keys.partitions.of(chat.id), result.wait_ms);
      return { ...edited, isPending: true };
    }
    this.#forwarder.follow(chat.id, result);
    return edited;
  }
}
