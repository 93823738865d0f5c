/** Defines a message together with all data that is needed to show it. */
import { type MessageRecord, messageKinds, type Profile, unpack, unpackMessage } from './codec.js';
import type { ChatRef } from './keys.js';

export interface StoredMessage {
  readonly chat: ChatRef;
  readonly id: number;
  readonly record: MessageRecord;
  /** In a direct chat, the profile of the user. In other chats, the profile of the chat. */
  readonly peer: Profile;
  /** The message that this message replies to or pins. */
  readonly reply: { readonly id: number; readonly record: MessageRecord } | null;
}

export const relatedId = (record: MessageRecord): number =>
  record.origin.reply ?? record.origin.service?.pinned ?? 0;

/** Builds a message from a script's reply. If the replied-to message is deleted or not in Redis, omits it. */
export function storedMessage(
  chat: ChatRef,
  id: number,
  bytes: MessageRecord | Buffer,
  peer: Profile | Buffer,
  reply: Buffer | null,
): StoredMessage {
  const record = Buffer.isBuffer(bytes) ? unpackMessage(bytes) : bytes;
  const replyId = relatedId(record);
  const replied = reply !== null && reply.length > 0 && replyId !== 0 ? unpackMessage(reply) : null;
  return {
    chat,
    id,
    record,
    peer: Buffer.isBuffer(peer) ? unpack<Profile>(peer) : peer,
    reply: replied && replied.kind !== messageKinds.deleted ? { id: replyId, record: replied } : null,
  };
}
