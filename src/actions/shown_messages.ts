/**
 * Adds the parts of a message that depend on the reader: poll results, and bot tokens for the owner of the bot
 * (behaviour §12).
 */
import { ApiError } from '../errors.js';
import { fillTokens, isTokenEntity } from '../rules/token_entity.js';
import type { MessageRecord } from '../store/core/codec.js';
import type { User } from '../store/core/control.js';
import type { ChatRef } from '../store/core/keys.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import type { Store } from '../store/store.js';
import { type MessageView, viewMessage } from '../view/messages.js';
import { withResults } from './polls.js';
import { personViewer } from './reading.js';

const placesIn = (record: MessageRecord | undefined): number[] =>
  record?.content.entities?.filter(isTokenEntity).map(({ bot }) => bot) ?? [];

function filled(record: MessageRecord, tokens: ReadonlyMap<number, string>): MessageRecord {
  const { content } = record;
  if (placesIn(record).length === 0 || content.text === undefined) return record;
  return { ...record, content: { ...content, ...fillTokens(content.text, content.entities ?? [], tokens) } };
}

/**
 * Returns the messages as this person sees them. Adds poll results. Fills the placeholders for the tokens of the
 * person's own bots; all other placeholders keep their stored text. While Postgres is unavailable, no placeholder is
 * filled. Queries no tokens if no message has a placeholder.
 */
export async function asSeenBy(
  store: Store,
  user: User,
  given: readonly StoredMessage[],
): Promise<readonly StoredMessage[]> {
  const messages = await withResults(store, { id: user.id, isBot: false }, given);
  const ids = messages.flatMap(({ record, reply }) => [...placesIn(record), ...placesIn(reply?.record)]);
  if (ids.length === 0) return messages;
  const tokens = await store.bots.tokensOf(user.id, [...new Set(ids)]).catch((error: unknown) => {
    if (error instanceof ApiError && error.kind === 'unavailable') return new Map<number, string>();
    throw error;
  });
  return messages.map((message) => ({
    ...message,
    record: filled(message.record, tokens),
    reply: message.reply && { ...message.reply, record: filled(message.reply.record, tokens) },
  }));
}

/**
 * Returns messages that this person sent to a chat, as this person sees them. Also fills token placeholders, because a
 * sent message may be a reply to a message that shows the token of one of the person's bots.
 */
export async function viewAllOwn(
  store: Store,
  chat: ChatRef,
  user: User,
  messages: readonly StoredMessage[],
): Promise<MessageView[]> {
  const [viewer, shown] = await Promise.all([
    personViewer(store, chat, user),
    asSeenBy(store, user, messages),
  ]);
  return shown.map((message) => viewMessage(message, viewer, store.time));
}

/** Returns a message that this person sent or edited, as this person sees it. */
export async function viewOwn(
  store: Store,
  chat: ChatRef,
  user: User,
  message: StoredMessage,
): Promise<MessageView> {
  const [shown] = await viewAllOwn(store, chat, user, [message]);
  return shown as MessageView;
}
