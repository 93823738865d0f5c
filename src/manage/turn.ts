/**
 * One update of the management bot: who sent it, and the reply. The request id of each change comes from the update and
 * the step's name, so that handling the update again, on any node, repeats no change and no message (law 4).
 */
import { ApiError } from '../errors.js';
import type { InlineKeyboard, Profile } from '../store/core/codec.js';
import type { User } from '../store/core/control.js';
import type { ChatRef } from '../store/core/keys.js';
import type { Store } from '../store/store.js';
import type { Talk } from './talk.js';
import type { ManageTexts } from './texts/en.js';
import { contentOf, type Said } from './words.js';

/** A message of the bot: text and buttons. */
export interface Screen extends Said {
  readonly keyboard?: InlineKeyboard | undefined;
}

/** The reply to an update. */
export interface Reply {
  /** Replaces the message whose button was pressed; else sent as a new message. */
  readonly screen?: Screen | undefined;
  /** An additional message. */
  readonly also?: Screen | undefined;
  /** Shown over the chat, for a press. */
  readonly alert?: Said | undefined;
  /** The next state of the conversation; unchanged if absent. */
  readonly next?: Talk | undefined;
}

export interface Turn {
  readonly user: User;
  readonly t: ManageTexts;
  /** Time of Redis or of the node, Unix seconds */
  readonly now: number;
  readonly talk: Talk;
  /** The store for reading. */
  readonly store: Store;
  /** The store for one change of this update. The same step has the same request id in every run. */
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

/** Replaces a message by a screen; sends a new message if the old one cannot be edited, or was edited just now. */
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
