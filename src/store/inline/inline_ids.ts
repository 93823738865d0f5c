/**
 * Computes the ids of inline mode. The id that a bot uses for an inline message contains the encrypted chat and
 * message. Petrel therefore needs no table of these ids, and an id does not reveal the chat. The id is valid only for
 * this bot: another bot gets another id for the same message. The id of an answer is valid only for the person who saw
 * the answer. Without this restriction, other people could guess query ids.
 */
import { createCipheriv, createDecipheriv, createHmac, timingSafeEqual } from 'node:crypto';
import { pack, unpack } from '../core/codec.js';
import { type ChatRef, chatText } from '../core/keys.js';
import type { Secrets } from '../core/secrets.js';

export interface InlinePlace {
  readonly chat: ChatRef;
  readonly messageId: number;
}

export type InlineIds = ReturnType<typeof createInlineIds>;

const nonceBytes = 12;
const tagBytes = 16;
const length_max = 128;
const proofBytes = 16;

export function createInlineIds(secrets: Pick<Secrets, 'derive'>) {
  const sealKey = secrets.derive('inline messages');
  const digestKey = secrets.derive('digests of inline messages');
  const answerKey = secrets.derive('answers to inline queries');
  const proofOf = (user: number, query: string) =>
    createHmac('sha256', answerKey).update(`${user} ${query}`).digest().subarray(0, proofBytes);
  const digest = (bot: number, what: string | Buffer) =>
    createHmac('sha256', digestKey).update(`${bot} `).update(what).digest();

  return {
    /** Returns the inline message id by which a bot knows this message. The same message always has the same id. */
    idOf(bot: number, { chat, messageId }: InlinePlace): string {
      const plain = pack([chat.id, chat.user, messageId]);
      const nonce = digest(bot, plain).subarray(0, nonceBytes);
      const cipher = createCipheriv('aes-256-gcm', sealKey, nonce).setAAD(Buffer.from(String(bot)));
      const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
      return Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString('base64url');
    },
    /** Returns the message that has this inline message id for the bot, or null if the id is invalid. */
    placeOf(bot: number, id: string): InlinePlace | null {
      if (id.length > length_max) return null;
      const bytes = Buffer.from(id, 'base64url');
      const end = bytes.length - tagBytes;
      if (end <= nonceBytes) return null;
      try {
        const decipher = createDecipheriv('aes-256-gcm', sealKey, bytes.subarray(0, nonceBytes))
          .setAAD(Buffer.from(String(bot)))
          .setAuthTag(bytes.subarray(end));
        const plain = Buffer.concat([decipher.update(bytes.subarray(nonceBytes, end)), decipher.final()]);
        const [chat, user, messageId] = unpack<[number, number, number]>(plain);
        return { chat: { id: chat, user }, messageId };
      } catch {
        return null;
      }
    },
    /**
     * Returns the id of a query's answer for one person. The id is valid only for this person. It proves that the
     * person has seen the answer.
     */
    answerIdOf: (user: number, query: string): string =>
      `${query}-${proofOf(user, query).toString('base64url')}`,
    /** Returns the query to which an answer id belongs, or null if the id is not valid for this person. */
    queryOf(user: number, id: string): string | null {
      const [, query = '', proof = ''] = /^(\d{4,19})-([\w-]{22})$/.exec(id) ?? [];
      const given = Buffer.from(proof, 'base64url');
      return given.length === proofBytes && timingSafeEqual(given, proofOf(user, query)) ? query : null;
    },
    /** Returns `chat_instance` for a bot that must not learn the chat's id. */
    instanceOf: (bot: number, chat: ChatRef): string =>
      digest(bot, chatText(chat)).readBigInt64BE().toString(),
  };
}
