/** The unsent text of each chat. It is lost when the page is closed. */
import { Cell } from '../signal.js';

export const drafts = new Map<number, string>();

/** A counter that changes when something other than typing sets a draft. */
export const draftsSet = new Cell(0);

export function setDraft(chat: number, text: string): void {
  drafts.set(chat, text);
  draftsSet.set(draftsSet.value + 1);
}
