/**
 * Shares this window's drafts with the person's other windows, through the service (decision 0092). The application
 * loads this file after the list of chats.
 *
 * A draft is unsaved from a change in this window until the service confirms the change. A draft from another window
 * replaces the text here, unless the text here is unsaved. An unsaved text is sent, and then replaces the draft in all
 * windows. Only one call at a time sends the draft of a chat, so an earlier text never replaces a later one.
 */
import { ApiFailure, call, get, isRefusal } from '../api.js';
import { isLeaving } from '../session.js';
import type { ChatDraft, Page } from '../types.js';
import { changeDraft, draftIn, draftOf, drafts, restoreDrafts, shareDrafts, showDraft } from './drafts.js';

/** The maximum length of a draft that the service stores. A longer draft is stored only in this browser. */
const length_max = 4_096;
/** How often a draft is sent while the person types, and how long to wait after a failed call. */
const save_ms = 300;
const retry_ms = 5_000;
/** The maximum number of sent texts that are remembered for a chat. */
const sent_max = 10;

/** The timers of the next calls, keyed by chat. Null while a call is in flight. */
const saving = new Map<number, ReturnType<typeof setTimeout> | null>();
/** For each chat, the newest draft that arrived from another window while this window's text was unsaved. */
const passed = new Map<number, ChatDraft>();

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

/**
 * Sends the draft soon. An empty text is sent immediately. The person has usually just sent the message, and other
 * windows must no longer show it as a draft.
 */
const saveSoon = (chat: number): void => save(chat, draftOf(chat) === '' ? 0 : save_ms);

async function send(chat: number): Promise<void> {
  saving.delete(chat);
  const { text, isUnsaved, sent } = draftIn(chat);
  if (!isUnsaved || isLeaving || [...text].length > length_max) return;
  saving.set(chat, null);
  changeDraft(chat, { sent: [...sent.slice(1 - sent_max), text] });
  let failure: unknown;
  try {
    const { version } = await call<{ version: number }>('PUT', `/api/me/drafts/${chat}`, { text });
    const former = draftIn(chat);
    changeDraft(chat, {
      version: Math.max(former.version, version),
      isUnsaved: former.text !== text,
      sent: [],
    });
  } catch (error) {
    failure = error;
  }
  saving.delete(chat);
  takePassed(chat);
  saveAgain(chat, text, failure);
}

const retryAfter = (error: unknown): number =>
  error instanceof ApiFailure && error.retryAfter > 0 ? error.retryAfter * 1_000 : retry_ms;

/**
 * Runs after a call that sent `text` to the service. If the draft is still unsaved, sends it again, unless the service
 * would refuse it again. `failure` is the error of the call, or undefined.
 */
function saveAgain(chat: number, text: string, failure: unknown): void {
  const present = draftIn(chat);
  if (!present.isUnsaved) return;
  const isChanged = present.text !== text;
  // The service would refuse the same text again. The text is sent again only after the person has changed it.
  if (isRefusal(failure) && !isChanged) return;
  if (failure === undefined || (isChanged && !(failure instanceof ApiFailure))) saveSoon(chat);
  else save(chat, retryAfter(failure));
}

/** Takes the draft that arrived from another window while this window was sending its draft. */
function takePassed(chat: number): void {
  const later = passed.get(chat);
  passed.delete(chat);
  if (later) takeDraft(later);
}

/**
 * Takes a draft that the service reports. Ignores a draft whose version is not newer, for instance a draft that this
 * window sent.
 */
export function takeDraft(given: ChatDraft): void {
  const { chat_id: chat, text, version } = given;
  const draft = draftIn(chat);
  if (version <= draft.version) return;
  // The person may have removed the draft while there was no connection. This removal must not delete a text that
  // another window has sent since.
  const isRemoval = draft.text === '' && !draft.sent.includes(text);
  const isSending = saving.get(chat) === null;
  if (isSending || (draft.isUnsaved && !isRemoval)) passed.set(chat, given);
  else if (draft.text === text) changeDraft(chat, { version, isUnsaved: false });
  else showDraft(chat, { text, version, isUnsaved: false, isFromElsewhere: true });
}

/**
 * Handles the event about a draft. First loads the drafts that the browser has stored, because their versions are
 * needed for the comparison with the event.
 */
export const onDraft = (draft: ChatDraft): Promise<void> => restoreDrafts().then(() => takeDraft(draft));

/**
 * Loads the drafts that the service has, and sends this window's unsaved drafts. Call this when the event stream is
 * open, so that no change is missed. Ignores errors, because the stream is opened again after a lost connection.
 */
export async function loadDrafts(): Promise<void> {
  await restoreDrafts();
  shareDrafts(saveSoon);
  try {
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const page: Page<ChatDraft> = await get(`/api/me/drafts?limit=100${cursor && `&cursor=${cursor}`}`);
      for (const draft of page.items) takeDraft(draft);
      cursor = page.next_cursor;
    }
  } catch {
    // If the drafts of the service cannot be loaded, this window's drafts are still sent.
  }
  for (const [chat, { isUnsaved }] of drafts) if (isUnsaved) save(chat, 0);
}
