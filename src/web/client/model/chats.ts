/** The chats of the signed-in person, kept up to date by the event stream. */
import { call, get } from '../api.js';
import { reasonOf } from '../failures.js';
import { openLive } from '../live.js';
import { previewOf } from '../names.js';
import { me } from '../session.js';
import { Cell, Signal } from '../signal.js';
import type { ChatSummary, Invitation, Message, Page } from '../types.js';
import { History } from './history.js';
import { noteAnswer } from './presses.js';

export const connected = new Cell<'connecting' | 'open' | 'cut'>('connecting');

const dateOf = ({ last_message, joined_at }: ChatSummary) => last_message?.date ?? joined_at ?? 0;
/** The order of the service: by latest activity, then by id. */
const byActivity = (a: ChatSummary, b: ChatSummary) => dateOf(b) - dateOf(a) || b.id - a.id;

class Chats extends Signal {
  readonly byId = new Map<number, ChatSummary>();
  loaded = false;
  failed = '';

  /** Cursor of the next page; undefined once all are loaded. */
  #cursor: string | undefined;
  #loadingMore = false;

  /** All loaded chats, latest activity first. */
  get list(): ChatSummary[] {
    return [...this.byId.values()].sort(byActivity);
  }

  /** Loads the first page again. */
  async load(): Promise<void> {
    void loadInvitations();
    try {
      const page = await get<Page<ChatSummary>>('/api/chats');
      const found = new Set(page.items.map(({ id }) => id));
      const last = page.items.at(-1);
      // The person has left a chat that sorts before the end of the page but is not on it. Chats after its end are on later pages.
      for (const [id, chat] of this.byId)
        if (!found.has(id) && (!page.next_cursor || (last && byActivity(chat, last) < 0)))
          this.byId.delete(id);
      for (const chat of page.items) this.#take(chat);
      if (!this.loaded || !page.next_cursor) this.#cursor = page.next_cursor;
      this.loaded = true;
      this.failed = '';
    } catch (error) {
      this.failed = reasonOf(error);
    }
    this.changed();
  }

  /** Loads the next page, unless there is none or it is being loaded. */
  async loadMore(): Promise<void> {
    if (!this.#cursor || this.#loadingMore) return;
    this.#loadingMore = true;
    try {
      const page = await get<Page<ChatSummary>>(`/api/chats?cursor=${this.#cursor}`);
      for (const chat of page.items) this.#take(chat);
      this.#cursor = page.next_cursor;
      this.failed = '';
    } catch (error) {
      this.failed = reasonOf(error);
    }
    this.#loadingMore = false;
    this.changed();
  }

  /** Keeps the newer last message: a loaded summary may be older than an event that arrived meanwhile. */
  #take(chat: ChatSummary): void {
    const known = this.byId.get(chat.id);
    const newer = (known?.last_message?.message_id ?? 0) > (chat.last_message?.message_id ?? 0);
    this.byId.set(
      chat.id,
      newer && known
        ? { ...chat, last_message: known.last_message, unread_count: known.unread_count }
        : withRead(chat),
    );
  }

  async refresh(id: number): Promise<void> {
    try {
      const chat = await get<ChatSummary>(`/api/chats/${id}`);
      this.byId.set(id, withRead(chat));
    } catch {
      // The person left the chat or may not see it.
      this.byId.delete(id);
    }
    this.changed();
  }

  update(id: number, change: Partial<ChatSummary>): void {
    const chat = this.byId.get(id);
    if (chat) this.byId.set(id, { ...chat, ...change });
    this.changed();
  }
}

export const chats = new Chats();

/** Pending invitations, from the first page only. */
export const invitations = new Cell<readonly Invitation[]>([]);

/** Ignores errors: the invitations are loaded again with the list of chats. */
const loadInvitations = () =>
  get<Page<Invitation>>('/api/me/invitations').then(
    ({ items }) => invitations.set(items),
    () => {},
  );

/** Joins the chat or declines; reloads the list, which drops invitations that expired or were answered elsewhere. */
export async function answerInvitation(chat: number, answer: 'accept' | 'decline'): Promise<void> {
  try {
    await call('POST', `/api/me/invitations/${chat}/${answer}`);
    if (answer === 'accept') await chats.refresh(chat);
  } finally {
    await loadInvitations();
  }
}

/** The service may not yet know the read position when it returns the chat. */
const withRead = (chat: ChatSummary): ChatSummary =>
  (readUpTo.get(chat.id) ?? 0) >= (chat.last_message?.message_id ?? 1) ? { ...chat, unread_count: 0 } : chat;

/** Whether the chat is muted now; an expired mute does not count. */
export const isMuted = ({ muted, muted_until }: ChatSummary): boolean =>
  muted === true && (muted_until === undefined || muted_until * 1_000 > Date.now());

const histories = new Map<number, History>();
const histories_max = 30;

export function historyOf(chat: number): History {
  let history = histories.get(chat);
  if (!history) {
    history = new History(chat);
    histories.set(chat, history);
    const idle = [...histories].find(([id, one]) => id !== chat && one.outgoing.length === 0);
    if (histories.size > histories_max && idle) histories.delete(idle[0]);
  }
  return history;
}

/** Who is typing, by chat; each entry is shown for some seconds. */
export const typing = new Cell<ReadonlyMap<number, { readonly from: number; readonly action: string }>>(
  new Map(),
);
const typing_ms = 5_500;
const typingTimers = new Map<number, ReturnType<typeof setTimeout>>();

function setTyping(chat: number, doing: { from: number; action: string } | null): void {
  clearTimeout(typingTimers.get(chat));
  const next = new Map(typing.value);
  if (doing) {
    next.set(chat, doing);
    typingTimers.set(
      chat,
      setTimeout(() => setTyping(chat, null), typing_ms),
    );
  } else if (!next.delete(chat)) return;
  typing.set(next);
}

/** Id of the chat in view, 0 for none. Messages that arrive there count as read. */
let looked = 0;
const readUpTo = new Map<number, number>();

/** Marks the newest message of a chat as read. */
export function markRead(chat: number): void {
  const summary = chats.byId.get(chat);
  const last = summary?.last_message?.message_id ?? 0;
  if (!summary || last === 0) return;
  if (summary.unread_count) chats.update(chat, { unread_count: 0 });
  if ((readUpTo.get(chat) ?? 0) >= last) return;
  readUpTo.set(chat, last);
  // One call for messages in quick succession. After an error the next message sends the position again.
  setTimeout(() => {
    if (readUpTo.get(chat) === last)
      call('POST', `/api/chats/${chat}/read`, { message_id: last }).catch(() => readUpTo.delete(chat));
  }, 300);
}

export function setLooked(chat: number): void {
  looked = chat;
}

/** Listeners for every new, edited or changed message, for pages that show more of it. */
export const heard = new Set<(event: string, message: Message) => void>();

function onMessage(message: Message): void {
  const { id } = message.chat;
  const mine = message.from?.id === me.value?.id;
  const history = histories.get(id);
  if (mine) history?.settle(message);
  else setTyping(id, null);
  const chat = chats.byId.get(id);
  const isNew = message.message_id > (chat?.last_message?.message_id ?? 0);
  if (!chat) void chats.refresh(id);
  else if (isNew) {
    const seen = mine || (looked === id && document.visibilityState === 'visible' && document.hasFocus());
    const unread = mine ? 0 : seen ? (chat.unread_count ?? 0) : (chat.unread_count ?? 0) + 1;
    chats.update(id, { last_message: previewOf(message), unread_count: unread });
  }
  history?.put(message, true);
}

function onEvent(event: string, data: unknown): void {
  const told = data as { chat_id: number; message_id: number };
  switch (event) {
    case 'ready':
      if (!chats.loaded) void chats.load();
      return;
    case 'message':
      onMessage(data as Message);
      break;
    case 'edited_message': {
      const message = data as Message;
      const chat = chats.byId.get(message.chat.id);
      if (chat?.last_message?.message_id === message.message_id)
        chats.update(chat.id, { last_message: previewOf(message) });
      if (chat?.pinned_message?.message_id === message.message_id)
        chats.update(chat.id, { pinned_message: previewOf(message) });
      histories.get(message.chat.id)?.put(message, false);
      break;
    }
    case 'message_deleted': {
      histories.get(told.chat_id)?.remove(told.message_id);
      const chat = chats.byId.get(told.chat_id);
      const shown = [chat?.last_message?.message_id, chat?.pinned_message?.message_id];
      if (shown.includes(told.message_id)) void chats.refresh(told.chat_id);
      return;
    }
    case 'pinned': {
      const { pinned_message } = data as { pinned_message?: Message };
      chats.update(told.chat_id, { pinned_message: pinned_message && previewOf(pinned_message) });
      return;
    }
    case 'chat_action': {
      const { from_id, action } = data as { from_id: number; action: string };
      setTyping(told.chat_id, { from: from_id, action });
      return;
    }
    case 'callback_answer':
      noteAnswer(data as Parameters<typeof noteAnswer>[0]);
      return;
    case 'reset':
      void chats.refresh(told.chat_id);
      void histories.get(told.chat_id)?.reset();
      return;
  }
  for (const listener of heard) listener(event, data as Message);
}

/** Starts to follow all events. The returned function stops it. */
export function startChats(): () => void {
  const close = openLive({
    path: '/api/stream',
    tellsUnseen: true,
    on: onEvent,
    state(open) {
      connected.set(open ? 'open' : connected.value === 'connecting' ? 'connecting' : 'cut');
      if (open) for (const history of histories.values()) history.resume();
    },
  });
  // No event reports that the person was added to a chat.
  const onVisible = () => {
    if (document.visibilityState === 'visible' && chats.loaded) void chats.load();
  };
  document.addEventListener('visibilitychange', onVisible);
  return () => {
    close();
    document.removeEventListener('visibilitychange', onVisible);
  };
}
