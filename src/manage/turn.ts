/**
 * One update of the management bot: who sent it, and what is done about it. Each change draws its request id from the update
 * and the name of its step, so that an update that is handled again, by whichever node, changes and says nothing twice (law 4).
 */
import { ApiError } from '../errors.js';
import type { InlineKeyboard, Profile } from '../store/core/codec.js';
import type { User } from '../store/core/control.js';
import type { ChatRef } from '../store/core/keys.js';
import type { Store } from '../store/store.js';
import type { Talk } from './talk.js';
import type { ManageTexts } from './texts/en.js';
import { contentOf, type Said } from './words.js';

/** A message of the bot: words, and buttons below them. */
export interface Screen extends Said {
  readonly keyboard?: InlineKeyboard | undefined;
}

/** What is done about an update. */
export interface Reply {
  /** In the place of the message whose button was pressed; a new message where none was. */
  readonly screen?: Screen | undefined;
  /** Said besides. */
  readonly also?: Screen | undefined;
  /** Shown over the chat, for a press. */
  readonly alert?: Said | undefined;
  /** What the next message will be taken for; the conversation stays where it is without. */
  readonly next?: Talk | undefined;
}

export interface Turn {
  readonly user: User;
  readonly t: ManageTexts;
  /** Redis' or the node's time, Unix seconds */
  readonly now: number;
  readonly talk: Talk;
  /** The store for what is only read. */
  readonly store: Store;
  /** The store for one change of this update, named alike in every run. */
  under(step: string): Store;
}

export interface Place {
  readonly store: Store;
  readonly bot: Profile;
  readonly chat: ChatRef;
  readonly t: ManageTexts;
  readonly under: (step: string) => Store;
}

const rest = { flags: 0, replyTo: 0, allowMissingReply: false } as const;

const sender = (bot: Profile) => ({ id: bot.id, isBot: true, profile: bot });

export async function say({ bot, chat, t, under }: Place, step: string, screen: Screen): Promise<void> {
  const content = contentOf(t, screen);
  const message = { content, markup: screen.keyboard ?? null, ...rest };
  await under(step).messages.send(chat, sender(bot), message);
}

/** Puts a screen in the place of a message; a new message where that cannot be edited any more, or was just now. */
export async function show(place: Place, messageId: number, screen: Screen): Promise<void> {
  const { bot, chat, t, under } = place;
  const content = contentOf(t, screen);
  const edit = { what: 'text', content, markup: screen.keyboard ?? null } as const;
  try {
    await under('show').messages.edit(chat, sender(bot), messageId, edit);
  } catch (error) {
    if (!(error instanceof ApiError) || error.kind === 'unavailable') throw error;
    if (error.kind !== 'message_not_modified') await say(place, 'say_instead', screen);
  }
}
