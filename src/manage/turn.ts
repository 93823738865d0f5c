/**
 * Handles one update of the management bot: finds the sender, makes changes and replies. Each change gets a request id
 * made from the update and the step's name. If the update is handled again, its changes and messages are thus not
 * repeated (law 4 of the architecture).
 */
import { ApiError } from '../errors.js';
import type { InlineKeyboard, Profile } from '../store/core/codec.js';
import type { User } from '../store/core/control.js';
import type { ChatRef } from '../store/core/keys.js';
import type { Store } from '../store/store.js';
import type { Talk } from './talk.js';
import type { ManageTexts } from './texts.js';
import { contentOf, type Said } from './words.js';

export interface Screen extends Said {
  readonly keyboard?: InlineKeyboard | undefined;
}

export interface Reply {
  /**
   * The text and buttons of the reply. They replace the message whose button was pressed. If no button was pressed,
   * they are sent as a new message.
   */
  readonly screen?: Screen | undefined;
  readonly also?: Screen | undefined;
  readonly alert?: Said | undefined;
  readonly next?: Talk | undefined;
}

export interface Turn {
  readonly user: User;
  readonly t: ManageTexts;
  /** The current Unix time in seconds, according to the clock of Redis or of this node. */
  readonly now: number;
  readonly talk: Talk;
  /** The store for reads. For a change, use the store that `under` returns. */
  readonly store: Store;
  /** Returns the store for one change. The same step of the same update always gets the same request id. */
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

/**
 * Replaces a message with a screen. Sends the screen as a new message if the old message cannot be edited or was edited
 * a moment ago.
 */
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
