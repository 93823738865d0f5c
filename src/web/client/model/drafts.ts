/**
 * Holds the unsent text of each chat. All windows of the person share it through the service (decision 0092). This
 * browser also stores it, so that it is still there after a reload and without a connection.
 *
 * A draft is unsaved from a change in this window until the service has stored it. A draft of another window replaces
 * the text here, unless the text here is unsaved. An unsaved text is sent and then replaces the draft in all windows.
 * Only one call at a time sends the draft of a chat, so an earlier text never replaces a later one.
 */
import { ApiFailure, call, get, isRefusal } from '../api.js';
import { isLeaving } from '../session.js';
import { Signal } from '../signal.js';
import type { ChatDraft, Page } from '../types.js';
import { keepDraft, keptDrafts } from './kept.js';

interface Draft {
  text: string;
  /** The version of the newest draft that the service reported, or 0. */
  version: number;
  isUnsaved: boolean;
  /** The last text that this window sent. The outcome of that call may be unknown. */
  sent: string;
  /** Whether the text was typed in another window. */
  isFromElsewhere: boolean;
  /** Counts the changes that the person did not type in this window. */
  sets: number;
}

const drafts = new Map<number, Draft>();
/** The maximum number of stored drafts. Further drafts are kept only until the page is closed. */
const drafts_max = 500;
/** The maximum length of a draft that the service stores. A longer draft stays in this browser. */
const length_max = 4_096;
/** How often a draft is sent while the person types, and how long to wait after a failed call. */
const save_ms = 300;
const retry_ms = 5_000;

/** The timers of the next calls. The value is null while a call is in flight. */
const saving = new Map<number, ReturnType<typeof setTimeout> | null>();
/** The newest draft of another window that arrived while the text here was unsaved. */
const passed = new Map<number, ChatDraft>();

/** Changes when a draft was set, but not when the person types. */
export const draftsSet = new Signal();

export const draftOf = (chat: number): string => drafts.get(chat)?.text ?? '';
export const setsOf = (chat: number): number => drafts.get(chat)?.sets ?? 0;
/** Returns whether the draft was typed in another window, and not changed here since. */
export const isFromElsewhere = (chat: number): boolean => drafts.get(chat)?.isFromElsewhere ?? false;

function entryOf(chat: number): Draft {
  let draft = drafts.get(chat);
  if (!draft) {
    draft = { text: '', version: 0, isUnsaved: false, sent: '', isFromElsewhere: false, sets: 0 };
    drafts.set(chat, draft);
  }
  return draft;
}

function keep(chat: number, { text, version, isUnsaved }: Draft): void {
  if (text === '' || drafts.size <= drafts_max) keepDraft({ chat, text, version, isUnsaved });
}

/** Sends the draft after `ms`, or after the call that is in flight. */
function save(chat: number, ms: number): void {
  const timer = saving.get(chat);
  if (timer === null || (timer !== undefined && ms > 0)) return;
  clearTimeout(timer);
  saving.set(
    chat,
    setTimeout(() => void send(chat), ms),
  );
}

/** An empty text is sent immediately, because a sent message must not stay in other windows as a draft. */
const pauseBefore = ({ text }: Draft): number => (text === '' ? 0 : save_ms);

async function send(chat: number): Promise<void> {
  const draft = entryOf(chat);
  const { text } = draft;
  if (!draft.isUnsaved || isLeaving || [...text].length > length_max) {
    saving.delete(chat);
    return;
  }
  saving.set(chat, null);
  draft.sent = text;
  let failure: unknown;
  try {
    const { version } = await call<{ version: number }>('PUT', `/api/chats/${chat}/draft`, { text });
    draft.version = Math.max(draft.version, version);
    draft.isUnsaved = draft.text !== text;
  } catch (error) {
    failure = error;
    // A refused draft stays in this browser.
    if (isRefusal(error)) draft.isUnsaved = draft.text !== text;
  }
  saving.delete(chat);
  keep(chat, draft);
  if (draft.isUnsaved) save(chat, failure ? retryAfter(failure) : pauseBefore(draft));
  else take(chat);
}

const retryAfter = (error: unknown): number =>
  error instanceof ApiFailure && error.retryAfter > 0 ? error.retryAfter * 1_000 : retry_ms;

/** Takes the draft that another window sent after the last call of this window. */
function take(chat: number): void {
  const later = passed.get(chat);
  passed.delete(chat);
  if (later) takeDraft(later);
}

/** Takes a draft that the service reports. Earlier drafts, and the reports of own calls, change nothing. */
export function takeDraft(given: ChatDraft): void {
  const { chat_id: chat, text, version } = given;
  const draft = entryOf(chat);
  if (version <= draft.version) return;
  // A removal without a connection must not remove the text that another window has sent since.
  const isRemoval = draft.text === '' && text !== draft.sent;
  if (draft.isUnsaved && !isRemoval) {
    passed.set(chat, given);
    return;
  }
  draft.version = version;
  draft.isUnsaved = false;
  if (draft.text !== text) {
    draft.text = text;
    draft.isFromElsewhere = true;
    draft.sets++;
    draftsSet.changed();
  }
  keep(chat, draft);
}

/** Stores the typed text as the draft of a chat, and sends it soon. */
export function noteDraft(chat: number, text: string): void {
  const draft = entryOf(chat);
  if (text === draft.text) return;
  draft.text = text;
  draft.isUnsaved = true;
  draft.isFromElsewhere = false;
  keep(chat, draft);
  save(chat, pauseBefore(draft));
}

export function setDraft(chat: number, text: string): void {
  noteDraft(chat, text);
  entryOf(chat).sets++;
  draftsSet.changed();
}

let restored: Promise<void> = Promise.resolve();

/** Loads the stored drafts. Skips chats in which the person has already typed. */
export function restoreDrafts(): Promise<void> {
  restored = keptDrafts().then((kept) => {
    for (const { chat, text, version = 0, isUnsaved = true } of kept)
      if (!drafts.has(chat))
        drafts.set(chat, { text, version, isUnsaved, sent: '', isFromElsewhere: false, sets: 1 });
    draftsSet.changed();
  });
  return restored;
}

/** Handles the event about a draft. The stored drafts are loaded first, because they have versions. */
export const onDraft = (draft: ChatDraft): Promise<void> => restored.then(() => takeDraft(draft));

/**
 * Loads the drafts of the other windows, and sends the unsaved ones. Call this when the event stream is open, so that no
 * change is missed. Ignores errors, because the stream is opened again after a lost connection.
 */
export async function loadDrafts(): Promise<void> {
  await restored;
  try {
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const page: Page<ChatDraft> = await get(`/api/me/drafts?limit=100${cursor && `&cursor=${cursor}`}`);
      for (const draft of page.items) takeDraft(draft);
      cursor = page.next_cursor;
    }
  } catch {
    // The drafts of this window are sent anyway.
  }
  for (const [chat, draft] of drafts) if (draft.isUnsaved) save(chat, 0);
}
