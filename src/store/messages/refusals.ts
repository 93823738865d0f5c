/** Maps refusals of message scripts to errors. */
import { type ErrorName, fail } from '../../errors.js';

/**
 * Returns the error for a caller who is not in the chat. To such a caller, a private channel or a chat of two people
 * seems not to exist.
 */
export function notMember(who: { readonly isBot: boolean }, kind: string): never {
  if (kind === 'person' || kind === 'closed') return fail('chat_not_found');
  if (!who.isBot) return fail(kind === 'private' ? 'chat_not_found' : 'not_chat_member');
  return fail(kind === 'group' ? 'not_group_member' : 'not_channel_member');
}

const blocked = (who: { readonly isBot: boolean }): never =>
  fail(who.isBot ? 'bot_blocked' : 'bot_blocked_by_you');

const plurals: Readonly<Record<string, string>> = {
  text: 'text messages',
  photo: 'photos',
  video: 'videos',
  animation: 'animations',
  audio: 'music',
  document: 'documents',
  voice: 'voice notes',
  video_note: 'video notes',
  sticker: 'stickers',
  poll: 'polls',
  location: 'locations',
  venue: 'venues',
  contact: 'contacts',
  dice: 'dice',
  inline: 'inline bot results',
};

type CommonRefusal =
  | 'blocked'
  | 'chat_closed'
  | 'cant_write'
  | 'not_member'
  | 'not_permitted'
  | 'outbox_full'
  | 'too_often';

/** Throws the error for a script's refusal. `others` contains errors for refusals that only some scripts return. */
export function refused<
  R extends { readonly status: string; readonly kind?: string; readonly what?: string },
>(
  who: { readonly isBot: boolean },
  refusal: R,
  others: Readonly<Record<Exclude<R['status'], CommonRefusal>, ErrorName>>,
): never {
  switch (refusal.status) {
    case 'blocked':
      return blocked(who);
    case 'chat_closed':
      return fail('cant_write_to_person');
    case 'cant_write':
      return fail('cant_write_to_bot');
    case 'not_member':
      return notMember(who, refusal.kind as string);
    case 'not_permitted':
      return fail('sending_not_permitted', { what: plurals[refusal.what as string] ?? 'messages' });
    case 'outbox_full':
    case 'too_often':
      return fail('too_many_requests', { retry_after: 1 });
    default:
      return fail(others[refusal.status as keyof typeof others]);
  }
}
