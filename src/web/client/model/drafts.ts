/** Holds the unsent text of each chat. The text is stored, so that it is still there after a reload. */
import { Cell } from '../signal.js';
import { keepDraft, keptDrafts } from './kept.js';

/** The drafts by chat, without empty drafts. */
const drafts = new Map<number, string>();
/** The maximum number of stored drafts. Further drafts are kept only until the page is closed. */
const drafts_max = 500;

/** Counts the changes of drafts that the person did not type. */
export const draftsSet = new Cell(0);

export const draftOf = (chat: number): string => drafts.get(chat) ?? '';

/** Stores the typed text as the draft of a chat. */
export function noteDraft(chat: number, text: string): void {
  if (text === draftOf(chat)) return;
  if (text === '') drafts.delete(chat);
  else drafts.set(chat, text);
  if (text === '' || drafts.size <= drafts_max) keepDraft(chat, text);
}

export function setDraft(chat: number, text: string): void {
  noteDraft(chat, text);
  draftsSet.set(draftsSet.value + 1);
}

/** Loads the stored drafts. Skips chats in which the person has already typed. */
export async function restoreDrafts(): Promise<void> {
  for (const { chat, text } of await keptDrafts()) if (draftOf(chat) === '') drafts.set(chat, text);
  draftsSet.set(draftsSet.value + 1);
}
