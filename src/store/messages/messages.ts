/** Sends, edits and deletes messages: one round trip if the data is in Redis. */
import { type ErrorName, fail } from '../../errors.js';
import {
  type Content,
  type InlineKeyboard,
  kindOfContent,
  type Origin,
  type Profile,
  pack,
  packContent,
  packMarkup,
  packMessageTail,
} from '../core/codec.js';
import { type StoreContext, uniqueText } from '../core/context.js';
import { type ChatRef, chatText, isDirect } from '../core/keys.js';
import { directKeys, sharedKeys, withMessage } from '../core/script_keys.js';
import { type StoredMessage, storedMessage } from '../core/stored_message.js';
import type { Forwarder } from '../updates/forwarder.js';
import type { ReadBack } from './read_back.js';
import { type Given, isLookUp, type Repeats } from './repeats.js';

export interface Sender {
  readonly id: number;
  readonly isBot: boolean;
  readonly profile: Profile;
}

export interface NewMessage {
  readonly content: Content;
  readonly markup: InlineKeyboard | null;
  readonly flags: number;
  /** id of the message that this one replies to; 0 for none */
  readonly replyTo: number;
  /** further fields of the message that never change */
  readonly origin?: Pick<Origin, 'forward' | 'group'>;
  /** whether to send without the reply if its target no longer exists */
  readonly allowMissingReply: boolean;
}

/** The new content. For `caption` it is only the caption; for `media` it includes the caption. */
export type Edit =
  | {
      readonly what: 'text' | 'caption' | 'media';
      readonly content: Content;
      readonly markup: InlineKeyboard | null;
    }
  | { readonly what: 'markup'; readonly markup: InlineKeyboard | null };

export interface Messages {
  /**
   * Errors: `chat_not_found`, `cant_initiate`, `bot_blocked`, `not_group_member`, `not_channel_member`, `not_chat_member`,
   * `posting_not_allowed`, `reply_not_found`, `cant_write_to_bot`, `bot_not_found`.
   */
  send(chat: ChatRef, sender: Sender, message: Given<NewMessage>): Promise<StoredMessage>;
  /** Edits a message. Errors are checked in the order of behaviour §7. */
  edit(chat: ChatRef, editor: Sender, messageId: number, edit: Given<Edit>): Promise<StoredMessage>;
  /** Edits a message of a partition that `find` looks up. `find` is not called if this edit was already made. */
  editFound(
    partition: number,
    editor: Sender,
    find: () => Promise<{ readonly chat: ChatRef; readonly messageId: number; readonly edit: Edit }>,
  ): Promise<StoredMessage>;
  /** Deletes a message. Errors: `message_to_delete_not_found`, `message_cant_be_deleted`. */
  remove(chat: ChatRef, who: Sender, messageId: number): Promise<void>;
}

const editErrors = {
  not_found: 'message_to_edit_not_found',
  cant_be_edited: 'message_cant_be_edited',
  no_text: 'no_text_to_edit',
  no_caption: 'no_caption_to_edit',
  no_media: 'media_cant_be_edited',
  not_modified: 'message_not_modified',
} as const satisfies Record<string, ErrorName>;

const nothing = Buffer.alloc(0);
const noOrigin: Origin = {};
const later = (): never => fail('too_many_requests', { retry_after: 1 });
/** The error for a caller who is not in a group or channel. Private channels appear not to exist for people outside. */
export function notMember(who: { readonly isBot: boolean }, kind: string): never {
  if (!who.isBot) return fail(kind === 'private' ? 'chat_not_found' : 'not_chat_member');
  return fail(kind === 'group' ? 'not_group_member' : 'not_channel_member');
}

/** The error for either side while a person blocks a bot. */
export const blocked = (who: { readonly isBot: boolean }): never =>
  fail(who.isBot ? 'bot_blocked' : 'bot_blocked_by_you');

/** In groups and channels a message stores a copy of its sender's profile; a direct chat does not need one. */
function originOf(from: Profile | null, replyTo: number): Origin {
  if (from === null) return replyTo === 0 ? noOrigin : { reply: replyTo };
  return replyTo === 0 ? { from } : { from, reply: replyTo };
}

/** The record of a new message replying to `replyTo` (0 for none), without the fields that the script adds. */
export function newRecord(chat: ChatRef, sender: Sender, message: NewMessage, replyTo: number) {
  const origin = originOf(isDirect(chat) ? null : sender.profile, replyTo);
  return {
    sender: sender.id,
    kind: kindOfContent(message.content),
    flags: message.flags,
    content: message.content,
    markup: message.markup,
    origin: message.origin === undefined ? origin : { ...origin, ...message.origin },
  };
}

type SendRefusal =
  | {
      readonly status:
        | 'reply_missing'
        | 'reply_not_found'
        | 'blocked'
        | 'cant_write'
        | 'not_allowed'
        | 'outbox_full';
    }
  | { readonly status: 'not_member'; readonly kind: string };

/** Converts a script's refusal to send into an error. */
export function sendRefused(sender: Sender, refusal: SendRefusal): never {
  switch (refusal.status) {
    case 'reply_missing':
    case 'reply_not_found':
      return fail('reply_not_found');
    case 'blocked':
      return blocked(sender);
    case 'cant_write':
      return fail('cant_write_to_bot');
    case 'not_member':
      return notMember(sender, refusal.kind);
    case 'not_allowed':
      return fail('posting_not_allowed');
    case 'outbox_full':
      return later();
  }
}

export function createMessages(
  { scripts, keys, requestId }: StoreContext,
  readBack: ReadBack,
  forwarder: Forwarder,
  repeats: Repeats,
): Messages {
  const partitionOf = (chat: ChatRef) => keys.partitions.of(chat.id);

  /** Makes one attempt to send, with one reply target. `request` makes a repeated attempt harmless. */
  async function trySend(
    chat: ChatRef,
    sender: Sender,
    message: NewMessage,
    replyTo: number,
    request: string,
  ) {
    const partition = partitionOf(chat);
    const direct = isDirect(chat);
    const fixed = newRecord(chat, sender, message, replyTo);
    const name = chatText(chat);
    const tail = packMessageTail(fixed);
    const reply_to = replyTo === 0 ? '' : String(replyTo);
    const from = direct && sender.isBot ? nothing : pack(sender.profile);
    const place = { chat, who: sender };
    const result = direct
      ? await readBack.complete(place, () =>
          scripts.call('messages/send_direct', partition, directKeys(keys, chat, request), {
            chat: name,
            tail,
            reply_to,
            from,
            token: uniqueText(),
          }),
        )
      : await readBack.complete(place, () =>
          scripts.call('messages/send_shared', partition, sharedKeys(keys, chat, request, sender.id), {
            chat: name,
            tail,
            sender: String(sender.id),
            reply_to,
            from,
            partition: String(partition),
            token: uniqueText(),
          }),
        );
    if (result.status !== 'ok') return result;
    forwarder.follow(chat.id, result);
    const post = 'post' in result ? (result.post as number) : 0;
    const record = { ...fixed, version: 0, date: result.date, editedAt: 0, post };
    return {
      status: 'ok' as const,
      sent: storedMessage(chat, result.message_id, record, result.peer, result.reply),
    };
  }

  async function send(chat: ChatRef, sender: Sender, given: Given<NewMessage>): Promise<StoredMessage> {
    const request = requestId();
    const sent = isLookUp(given) ? await repeats.sent(chat, request) : null;
    if (sent) return sent;
    const message = isLookUp(given) ? await given() : given;
    let result = await trySend(chat, sender, message, message.replyTo, request);
    if (result.status === 'reply_missing' && (await readBack.message(chat, message.replyTo, result.ticket))) {
      result = await trySend(chat, sender, message, message.replyTo, request);
    }
    if (
      (result.status === 'reply_missing' || result.status === 'reply_not_found') &&
      message.allowMissingReply
    ) {
      result = await trySend(chat, sender, message, 0, request);
    }
    return result.status === 'ok' ? result.sent : sendRefused(sender, result);
  }

  async function applyEdit(
    request: string,
    chat: ChatRef,
    editor: Sender,
    messageId: number,
    change: Edit,
  ): Promise<StoredMessage> {
    const partition = partitionOf(chat);
    const args = {
      edit: pack([chatText(chat), String(messageId), String(editor.id), change.what, uniqueText()]),
      content: change.what === 'markup' ? nothing : packContent(change.content),
      markup: packMarkup(change.markup),
    };
    const place = { chat, who: editor, message: { id: messageId, absent: editErrors.not_found } };
    const result = isDirect(chat)
      ? await readBack.complete(place, () =>
          scripts.call(
            'messages/edit_direct',
            partition,
            withMessage(keys, directKeys(keys, chat, request), chat, messageId),
            { ...args, from: editor.isBot ? nothing : pack(editor.profile) },
          ),
        )
      : await readBack.complete(place, () =>
          scripts.call(
            'messages/edit_shared',
            partition,
            withMessage(keys, sharedKeys(keys, chat, request, editor.id), chat, messageId),
            { ...args, from: pack(editor.profile) },
          ),
        );
    switch (result.status) {
      case 'ok':
        forwarder.follow(chat.id, result);
        return storedMessage(chat, messageId, result.record, result.peer, result.reply);
      case 'not_member':
        return notMember(editor, result.kind);
      case 'blocked':
        return blocked(editor);
      case 'cant_write':
        return fail('cant_write_to_bot');
      case 'outbox_full':
      case 'too_often':
        return later();
      default:
        return fail(editErrors[result.status]);
    }
  }

  async function editFound(
    partition: number,
    editor: Sender,
    find: () => Promise<{ readonly chat: ChatRef; readonly messageId: number; readonly edit: Edit }>,
  ): Promise<StoredMessage> {
    const request = requestId();
    const edited = await repeats.edited(partition, request);
    if (edited) return edited;
    const found = await find();
    return applyEdit(request, found.chat, editor, found.messageId, found.edit);
  }

  function edit(
    chat: ChatRef,
    editor: Sender,
    messageId: number,
    given: Given<Edit>,
  ): Promise<StoredMessage> {
    if (!isLookUp(given)) return applyEdit(requestId(), chat, editor, messageId, given);
    return editFound(partitionOf(chat), editor, async () => ({ chat, messageId, edit: await given() }));
  }

  async function remove(chat: ChatRef, who: Sender, messageId: number): Promise<void> {
    const at = withMessage(keys, sharedKeys(keys, chat, requestId(), who.id), chat, messageId);
    const args = {
      chat: chatText(chat),
      message_id: String(messageId),
      who: String(who.id),
      direct: isDirect(chat),
      token: uniqueText(),
    };
    const place = { chat, who, message: { id: messageId, absent: 'message_to_delete_not_found' } } as const;
    const result = await readBack.complete(place, () =>
      scripts.call('messages/delete', partitionOf(chat), at, args),
    );
    switch (result.status) {
      case 'ok':
        return;
      case 'not_member':
        return notMember(who, result.kind);
      case 'not_found':
        return fail('message_to_delete_not_found');
      case 'cant_be_deleted':
        return fail('message_cant_be_deleted');
    }
  }

  return { send, edit, editFound, remove };
}
