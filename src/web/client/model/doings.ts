/** Holds what other people are doing in each chat, such as typing, and tells the service what the person is doing. */
import { call } from '../api.js';
import { Cell } from '../signal.js';
import type { StreamEvents } from '../types.js';
import { t, type WordKey } from '../words.js';

type Doing = Omit<StreamEvents['chat_action'], 'chat_id'>;

/** What other people are doing, keyed by chat. Each entry is shown for some seconds. */
export const doings = new Cell<ReadonlyMap<number, readonly Doing[]>>(new Map());
const shown_ms = 5_500;
/** At most this many other people are shown as active in one chat. */
const shown_max = 100;
const timers = new Map<string, ReturnType<typeof setTimeout>>();

/** Shows what the person `from` is doing in a chat, or nothing if `doing` is null. */
export function setDoing(chat: number, from: number, doing: Doing | null): void {
  const before = doings.value.get(chat) ?? [];
  const others = before.filter(({ from_id }) => from_id !== from);
  if (doing ? others.length >= shown_max : others.length === before.length) return;
  const key = `${chat} ${from}`;
  clearTimeout(timers.get(key));
  timers.delete(key);
  if (doing)
    timers.set(
      key,
      setTimeout(() => setDoing(chat, from, null), shown_ms),
    );
  const next = new Map(doings.value);
  const list = doing ? [...others, doing] : others;
  if (list.length > 0) next.set(chat, list);
  else next.delete(chat);
  doings.set(next);
}

const words: Readonly<Record<string, WordKey>> = {
  upload_photo: 'doing_photo',
  upload_video: 'doing_video',
  upload_video_note: 'doing_video',
  record_voice: 'doing_record',
  upload_voice: 'doing_voice',
  upload_document: 'doing_file',
};

/**
 * Returns the text about what other people are doing in a chat, or '' if they are doing nothing. If `isGroup` is true,
 * the text contains their names.
 */
export function doingText(list: readonly Doing[] | undefined, isGroup: boolean): string {
  const [first, second] = list ?? [];
  if (!first || !list) return '';
  const doing = t(words[first.action] ?? 'typing');
  if (!isGroup || !first.from) return doing;
  // Uses only first names, because full names do not fit into the header on a phone.
  const name = first.from.first_name;
  if (list.length > 2) return t('doing_many', { n: list.length });
  const other = second?.from?.first_name;
  return other === undefined ? t('doing_one', { name, doing }) : t('doing_two', { name, other });
}

const told_ms = 4_000;
/** The last action that was sent to the service, keyed by chat. */
const told = new Map<number, { readonly action: string; readonly at: number }>();

/** Tells the other people in a chat what the person is doing, unless they were told the same a few seconds ago. */
export function tellDoing(chat: number, action: string): void {
  const last = told.get(chat);
  if (last?.action === action && Date.now() - last.at < told_ms) return;
  told.set(chat, { action, at: Date.now() });
  // Ignores errors, because the next action is sent anyway.
  call('POST', `/api/chats/${chat}/action`, { action }).catch(() => undefined);
}

/** Lets the next action be sent immediately, because the person has just sent a message, which ends the last action. */
export const endDoing = (chat: number): void => void told.delete(chat);
