/** Publishes hints to a person's open event streams. The hints are not stored. */
import type { StoreContext } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';

/** The prefix of a hint that the person has read a chat up to a message. The chat id and the message id follow. */
export const readHint = 'read ';
/**
 * The prefix of a hint that a chat in the person's list changed. The chat id follows. Either the person muted, pinned
 * or archived the chat or undid this, or the bot or the other person in the chat has a new name or avatar.
 */
export const settingsHint = 'settings ';
/** The prefix of a hint that the person's scheduled posts in a channel changed. The chat id follows. */
export const scheduledHint = 'scheduled ';
/** The hint that the person's own name, avatar or settings changed. */
export const profileHint = 'profile';

/** Ignores errors, because the change itself is stored, and other windows show it when they load the chat again. */
async function tell({ scripts, keys }: StoreContext, user: number, hint: string): Promise<void> {
  const at = { channel: keys.userChannel(user) };
  await scripts.call('chats/tell_person', keys.partitions.of(user), at, { hint }).catch(() => undefined);
}

export const tellRead = (context: StoreContext, user: number, chat: ChatRef, message: number) =>
  tell(context, user, `${readHint}${chat.id} ${message}`);

export const tellSettings = (context: StoreContext, user: number, chat: ChatRef) =>
  tell(context, user, `${settingsHint}${chat.id}`);

export const tellProfile = (context: StoreContext, user: number) => tell(context, user, profileHint);

export const tellScheduled = (context: StoreContext, user: number, chat: ChatRef) =>
  tell(context, user, `${scheduledHint}${chat.id}`);
