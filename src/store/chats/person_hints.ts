/** Publishes hints to the open event streams of a person. The hints are not stored. */
import type { StoreContext } from '../core/context.js';
import type { ChatRef } from '../core/keys.js';

/** The prefix of a hint with a new read mark. A chat id and a message id follow the prefix. */
export const readHint = 'read ';
/**
 * The prefix of a hint about a chat that the person muted, pinned or archived. The same prefix is used if the person
 * undid such a change, and if the name or the avatar of the person’s bot or of the other person changed. The chat id
 * follows.
 */
export const settingsHint = 'settings ';
/** The prefix of a hint about a change of the person’s scheduled posts in a channel. The chat id follows. */
export const scheduledHint = 'scheduled ';
/** The hint about a change of the person’s own name, avatar or settings. */
export const profileHint = 'profile';

/** Ignores errors, because the change is stored. Other windows show the change when they load the chat again. */
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
