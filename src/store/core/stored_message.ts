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

/** The message that this one answers, or tells to be pinned; 0 for none. */
export const relatedId = (record: MessageRecord): number =>
  record.origin.reply ?? record.origin.service?.pinned ?? 0;

/** Puts together what a script answered. A replied message that is gone, cold or deleted is left out. */
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
