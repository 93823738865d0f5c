/** A message as it stands in a chat, with what its view needs. */
import { type MessageRecord, messageKinds, type Profile, unpack, unpackMessage } from './codec.js';
import type { ChatRef } from './keys.js';

export interface StoredMessage {
  readonly chat: ChatRef;
  readonly id: number;
  readonly record: MessageRecord;
  /** of the user of a direct chat, of the chat otherwise */
  readonly peer: Profile;
  /** the message that this one answers, or tells to be pinned */
  readonly reply: { readonly id: number; readonly record: MessageRecord } | null;
}

/** Puts together what a script answered. A replied message that is gone, cold or deleted is left out. */
export function storedMessage(
  chat: ChatRef,
  id: number,
  bytes: MessageRecord | Buffer,
  peer: Buffer,
  reply: Buffer | null,
): StoredMessage {
  const record = Buffer.isBuffer(bytes) ? unpackMessage(bytes) : bytes;
  const replyId = record.origin.reply ?? record.origin.service?.pinned;
  const replied = reply !== null && reply.length > 0 && replyId !== undefined ? unpackMessage(reply) : null;
  return {
    chat,
    id,
    record,
    peer: unpack<Profile>(peer),
    reply:
      replied && replied.kind !== messageKinds.deleted ? { id: replyId as number, record: replied } : null,
  };
}
