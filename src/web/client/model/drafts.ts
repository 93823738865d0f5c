/**
 * Holds the text that the person has typed but not sent, for each chat. The browser stores these drafts, so that they
 * survive a reload and a lost connection. `shared_drafts.ts` shares them with the person's other windows.
 */
import { Cell, Signal } from '../signal.js';
import { keepDraft, keptDrafts } from './kept.js';

export interface Draft {
  text: string;
  /** The version of the newest draft that the service has reported, or 0. */
  version: number;
  /** Whether the text was changed in this window and the service has not confirmed this change. */
  isUnsaved: boolean;
  /** Whether the text was typed in another window. */
  isFromElsewhere: boolean;
  /**
   * The texts that this window has sent since the last call that the service confirmed. The service may have stored any
   * of these texts.
   */
  sent: readonly string[];
  /** Counts the changes of the draft that were not made by typing in this window. */
  sets: number;
}

export const drafts = new Map<number, Draft>();
/** The maximum number of drafts that the browser stores. Any others are lost when the page is closed. */
const drafts_max = 500;

/** Signals each change of a draft that was not made by typing in this window. */
export const draftsSet = new Signal();

const none: Draft = {
  text: '',
  version: 0,
  isUnsaved: false,
  isFromElsewhere: false,
  sent: [],
  sets: 0,
};
export const draftIn = (chat: number): Readonly<Draft> => drafts.get(chat) ?? none;
export const draftOf = (chat: number): string => draftIn(chat).text;

export function changeDraft(chat: number, change: Partial<Draft>): Draft {
  const draft = Object.assign(drafts.get(chat) ?? { ...none }, change);
  drafts.set(chat, draft);
  const { text, version, isUnsaved, sent } = draft;
  if (text === '' || drafts.size <= drafts_max) keepDraft({ chat, text, version, isUnsaved, sent });
  return draft;
}

/** Called after each change in this window. Until `shareDrafts` is called, changes are only marked as unsaved. */
let share = (_chat: number): void => {};
export function shareDrafts(send: (chat: number) => void): void {
  share = send;
}

/** Stores the typed text as the draft of a chat, and sends it to the service soon. */
export function noteDraft(chat: number, text: string): void {
  if (text === draftOf(chat)) return;
  changeDraft(chat, { text, isUnsaved: true, isFromElsewhere: false });
  share(chat);
}

/** Shows a draft that was not typed in this window. */
export function showDraft(chat: number, change: Partial<Draft>): void {
  changeDraft(chat, { ...change, sets: draftIn(chat).sets + 1 });
  draftsSet.changed();
}

export function setDraft(chat: number, text: string): void {
  noteDraft(chat, text);
  showDraft(chat, {});
}

/**
 * Whether the stored drafts are loaded. Until then, no text field is shown. Otherwise a typed text would replace a
 * stored draft that the person has not seen.
 */
export const areDraftsRestored = new Cell(false);
/** The time after which text fields are shown even if the browser has not answered. */
const restore_ms_max = 5_000;

let restored: Promise<void> | undefined;

/** Loads the drafts that the browser has stored, once. Skips chats in which the person has already typed. */
export function restoreDrafts(): Promise<void> {
  if (restored) return restored;
  const show = () => areDraftsRestored.set(true);
  const late = setTimeout(show, restore_ms_max);
  restored = keptDrafts().then((kept) => {
    for (const { chat, text, version = 0, isUnsaved = true, sent = [] } of kept)
      if (!drafts.has(chat)) drafts.set(chat, { ...none, text, version, isUnsaved, sent, sets: 1 });
    draftsSet.changed();
    clearTimeout(late);
    show();
  });
  return restored;
}
