/** Holds the chats of the signed-in person. The event stream keeps them up to date. */
import { call, get, isRefusal } from '../api.js';
import { attempt, reasonOf } from '../failures.js';
import { type LiveEvent, LiveStream } from '../live.js';
import { previewOf } from '../names.js';
import { me } from '../session.js';
import { Cell, Signal } from '../signal.js';
import type { ChatSummary, Invitation, Message, Page, StreamEvents } from '../types.js';
import { botDrafts } from './bot_drafts.js';
import { endDoing, setDoing, tellDoing } from './doings.js';
import { restoreDrafts } from './drafts.js';
import { History } from './history.js';
import { takeOver } from './kept.js';
import { loadSelf, people } from './people.js';
import { noteAnswer } from './presses.js';
import { replyKeyboards } from './reply_keyboards.js';

/** The state of the event stream. `connecting` means that the first attempt has neither succeeded nor failed yet. */
export const connected = new Cell<'connecting' | 'open' | 'cut'>('connecting');

const dateOf = ({ last_message, joined_at }: ChatSummary) => last_message?.date ?? joined_at ?? 0;
/** Sorts chats as the service does: pinned chats first, then by latest activity, then by id. */
const byPlace = (a: ChatSummary, b: ChatSummary) =>
  (b.list_pin ?? 0) - (a.list_pin ?? 0) || dateOf(b) - dateOf(a) || b.id - a.id;

type ChatPage = Page<ChatSummary> & { readonly archived_count?: number };

/**
 * One of the two lists that the service returns page by page: the chats that are not archived, or the archived ones.
 */
class Pages {
  readonly archived: boolean;
  /** The cursor of the next page, or undefined if all chats are loaded. */
  cursor: string | undefined;
  /** Whether the first page was loaded and had chats. */
  isLoaded = false;
  loading = false;

  constructor(archived: boolean) {
    this.archived = archived;
  }

  read(cursor?: string): Promise<ChatPage> {
    const query = [...(this.archived ? ['archived=true'] : []), ...(cursor ? [`cursor=${cursor}`] : [])];
    return get<ChatPage>(query.length === 0 ? '/api/chats' : `/api/chats?${query.join('&')}`);
  }
}

class Chats extends Signal {
  readonly byId = new Map<number, ChatSummary>();
  loaded = false;
  failed = '';

  /**
   * The numbers of the newest load that has begun and of the newest load that has ended. Loads are numbered in the
   * order in which they begin.
   */
  #began = 0;
  #ended = 0;
  /** For each chat that was removed or loaded individually: the value of `#began` when this happened. */
  readonly #changed = new Map<number, number>();
  readonly #main = new Pages(false);
  readonly #archive = new Pages(true);
  /** All chats in order, and the value of `version()` for which they were sorted. */
  #sorted: { readonly version: number; readonly chats: readonly ChatSummary[] } = { version: -1, chats: [] };

  /** Returns the loaded chats that are not archived, pinned chats first. */
  get list(): ChatSummary[] {
    return this.all.filter((chat) => !chat.archived && !isEmpty(chat));
  }

  get archived(): ChatSummary[] {
    return this.all.filter(({ archived }) => archived);
  }

  get all(): readonly ChatSummary[] {
    const version = this.version();
    if (this.#sorted.version !== version)
      this.#sorted = { version, chats: [...this.byId.values()].sort(byPlace) };
    return this.#sorted.chats;
  }

  /** Loads the invitations and the first page of each list again. */
  load(): Promise<void> {
    void loadInvitations();
    return this.loadPages();
  }

  /** Loads the first page of each list. Ignores the answer if a load that began later has already ended. */
  async loadPages(): Promise<void> {
    const began = ++this.#began;
    const isLate = () => began < this.#ended;
    try {
      const main = await this.#main.read();
      const archive = main.archived_count ? await this.#archive.read() : { items: [] };
      if (isLate()) return;
      this.#ended = began;
      for (const [id, at] of this.#changed) if (at < began) this.#changed.delete(id);
      this.#replace(this.#main, main, archive);
      this.#replace(this.#archive, archive, main);
      this.loaded = true;
      this.failed = '';
    } catch (error) {
      if (isLate()) return;
      this.failed = reasonOf(error);
    }
    this.changed();
  }

  /**
   * Merges the first page of a list into the known chats. If a chat should be on the page but is missing, the person
   * has left the chat, so it is removed. Chats after the last chat of the page are kept, because they are on later
   * pages. Chats in `#changed` are also kept, because the page may be older than the change.
   */
  #replace(pages: Pages, page: ChatPage, other: ChatPage): void {
    const found = new Set([...page.items, ...other.items].map(({ id }) => id));
    const last = page.items.at(-1);
    for (const [id, chat] of this.byId) {
      if (Boolean(chat.archived) !== pages.archived || found.has(id) || isEmpty(chat)) continue;
      if (this.#changed.has(id)) continue;
      if (page.next_cursor && last && byPlace(chat, last) > 0) continue;
      // The chat may be on a later page, because it was unpinned or moved to the other list.
      if (other.next_cursor || (chat.list_pin && page.next_cursor)) void this.refresh(id);
      else this.byId.delete(id);
    }
    for (const chat of page.items)
      if (this.byId.has(chat.id) || !this.#changed.has(chat.id)) this.#take(chat);
    if (!pages.isLoaded || !page.next_cursor) pages.cursor = page.next_cursor;
    pages.isLoaded = page.items.length > 0;
  }

  /**
   * Loads the next page of the archive or of the other chats. Does nothing if there is no next page, or if it is
   * already being loaded.
   */
  async loadMore(archived = false): Promise<void> {
    const pages = archived ? this.#archive : this.#main;
    if (!pages.cursor || pages.loading) return;
    pages.loading = true;
    try {
      const page = await pages.read(pages.cursor);
      for (const chat of page.items) this.#take(chat);
      pages.cursor = page.next_cursor;
      this.failed = '';
    } catch (error) {
      this.failed = reasonOf(error);
    }
    pages.loading = false;
    this.changed();
  }

  /** Loads the next page of each list. */
  loadAll(): void {
    void this.loadMore();
    void this.loadMore(true);
  }

  /**
   * Stores a loaded summary of a chat. If this window knows a newer last message than the summary contains, keeps the
   * newer message, because it may have arrived after the summary was created.
   */
  #take(chat: ChatSummary): void {
    const known = this.byId.get(chat.id);
    const newer = (known?.last_message?.message_id ?? 0) > (chat.last_message?.message_id ?? 0);
    this.byId.set(
      chat.id,
      newer && known
        ? withRead({
            ...chat,
            archived: archivedAfterMessage(chat),
            last_message: known.last_message,
            unread_count: known.unread_count,
            read_message_id: known.read_message_id,
          })
        : withRead(chat),
    );
  }

  async refresh(id: number): Promise<void> {
    const before = this.byId.get(id)?.last_message;
    const began = this.#began;
    try {
      const chat = await get<ChatSummary>(`/api/chats/${id}`);
      // If an event has arrived while the summary was loading, the event may be newer than the summary.
      if (this.byId.get(id)?.last_message !== before) this.#take(chat);
      else this.byId.set(id, withRead(chat));
      people.renew(chat);
    } catch (error) {
      // The service refuses the call if the person has left the chat or may not see it.
      if (isRefusal(error)) this.byId.delete(id);
    }
    this.#changed.set(id, began);
    this.changed();
  }

  remove(id: number): void {
    this.byId.delete(id);
    this.#changed.set(id, this.#began);
    this.changed();
  }

  update(id: number, change: Partial<ChatSummary>): void {
    const chat = this.byId.get(id);
    if (chat) this.byId.set(id, { ...chat, ...change });
    this.changed();
  }
}

/** Returns whether a chat of two people has no messages. The lists do not show such a chat, even if it is open. */
const isEmpty = ({ type, last_message }: ChatSummary): boolean => type === 'person' && !last_message;

export const chats = new Chats();

/** The channel in which scheduled posts changed last. */
export const scheduledIn = new Cell({ chat: 0 });

/** The first page of the pending invitations. */
export const invitations = new Cell<readonly Invitation[]>([]);

/** Ignores errors, because the invitations are loaded again with the list of chats. */
const loadInvitations = () =>
  get<Page<Invitation>>('/api/me/invitations').then(
    ({ items }) => invitations.set(items),
    () => {},
  );

/**
 * Joins the chat or declines the invitation. Then reloads the invitations, because some may have expired or been
 * answered in another window.
 */
export async function answerInvitation(chat: number, answer: 'accept' | 'decline'): Promise<void> {
  try {
    await call('POST', `/api/me/invitations/${chat}/${answer}`);
    if (answer === 'accept') await chats.refresh(chat);
  } finally {
    await loadInvitations();
  }
}

/**
 * Returns the summary of a chat. If this window's read position is later than the summary's, the returned summary has
 * this window's position. The service may have created the summary before it stored that position.
 */
function withRead(chat: ChatSummary): ChatSummary {
  const read = readUpTo.get(chat.id) ?? 0;
  if (read >= (chat.last_message?.message_id ?? 1)) return { ...chat, unread_count: 0 };
  const known = chats.byId.get(chat.id);
  if (!known || read <= (chat.read_message_id ?? read)) return chat;
  return { ...chat, unread_count: known.unread_count, read_message_id: read };
}

/** Returns whether the chat is muted now. A mute that has expired does not count. */
export const isMuted = ({ muted, muted_until }: ChatSummary): boolean =>
  muted === true && (muted_until === undefined || muted_until * 1_000 > Date.now());

/** Returns whether a chat stays archived when it gets a new message. Only muted chats stay archived. */
const archivedAfterMessage = (chat: ChatSummary) => (isMuted(chat) ? chat.archived : undefined);

/** Pins or archives a chat for the person, or undoes this. If the call fails, shows the reason. */
export const setPlace = (chat: number, place: 'list_pin' | 'archive', set: boolean): Promise<void> =>
  attempt(async () => {
    await call(set ? 'PUT' : 'DELETE', `/api/chats/${chat}/${place}`);
    await chats.refresh(chat);
  });

const histories = new Map<number, History>();
const histories_max = 30;

export function historyOf(chat: number): History {
  let history = histories.get(chat);
  if (!history) {
    history = new History(chat, (action) => tellIn(chat, action));
    histories.set(chat, history);
    const idle = [...histories].find(([id, one]) => id !== chat && one.outgoing.length === 0);
    if (histories.size > histories_max && idle) histories.delete(idle[0]);
  }
  return history;
}

/**
 * Tells the other people what the person is doing, in a group or in a chat of two people. Other kinds of chats do not
 * show this.
 */
export function tellIn(chat: number, action: string): void {
  const type = chats.byId.get(chat)?.type;
  if (type === 'group' || type === 'person') tellDoing(chat, action);
}

/**
 * The id of the chat whose newest message is in view, or 0 if there is none. New messages in this chat count as read.
 */
let looked = 0;
/** The last message that was read in each chat, in this or another window. */
const readUpTo = new Map<number, number>();

/** The service counts at most this many unread messages. */
export const unread_max = 100;

/** Counts the messages of other people after `id`. Returns a lower bound if the newest messages are not loaded. */
function countAfter(id: number, { unread_count = 0, read_message_id = 0 }: ChatSummary, history: History) {
  const others = history.messages.filter(({ from }) => from?.id !== me.value?.id);
  if (history.atEnd) return others.filter(({ message_id }) => message_id > id).length;
  if (unread_count >= unread_max) return unread_count;
  const read = others.filter(({ message_id }) => message_id > read_message_id && message_id <= id);
  return Math.max(1, unread_count - read.length);
}

/** Marks a chat as read up to a message, but only in this window's list. Returns whether the read position moved. */
function showRead(chat: number, read: number): boolean {
  const summary = chats.byId.get(chat);
  if (!summary || read <= (readUpTo.get(chat) ?? summary.read_message_id ?? 0)) return false;
  if (summary.unread_count) {
    const last = summary.last_message?.message_id ?? 0;
    const unread_count = read >= last ? 0 : countAfter(read, summary, historyOf(chat));
    chats.update(chat, { unread_count, read_message_id: read });
  }
  readUpTo.set(chat, read);
  return true;
}

/** Marks a chat as read up to a message, by default up to the newest one. */
export function markRead(chat: number, upTo?: number): void {
  const read = upTo ?? chats.byId.get(chat)?.last_message?.message_id ?? 0;
  if (!showRead(chat, read)) return;
  // Sends one call for all messages that are read within a short time. If the call fails, the read position is sent
  // again when the person reads the next message.
  setTimeout(() => {
    if (readUpTo.get(chat) === read)
      call('POST', `/api/chats/${chat}/read`, { message_id: read }).catch(() => readUpTo.delete(chat));
  }, 300);
}

export function setLooked(chat: number): void {
  looked = chat;
}

/** The functions to call with each new or edited message. */
export const messageListeners = new Set<(message: Message) => void>();
/** The functions to call with the ids of each deleted message and its chat. */
export const deletionListeners = new Set<(chat: number, message: number) => void>();

function onMessage(message: Message): void {
  const { id } = message.chat;
  const mine = message.from?.id === me.value?.id;
  const history = histories.get(id);
  if (message.from) people.rename(message.from);
  if (mine) {
    history?.settle(message);
    endDoing(id);
  } else if (message.from) setDoing(id, message.from.id, null);
  const chat = chats.byId.get(id);
  const isNew = message.message_id > (chat?.last_message?.message_id ?? 0);
  if (!chat) void chats.refresh(id);
  else if (isNew) {
    const isRead = message.message_id <= (readUpTo.get(id) ?? 0);
    const isLooked = looked === id && document.visibilityState === 'visible' && document.hasFocus();
    const seen = mine || isRead || isLooked;
    const before = chat.unread_count ?? 0;
    chats.update(id, {
      archived: archivedAfterMessage(chat),
      last_message: previewOf(message),
      unread_count: mine ? 0 : seen ? before : before + 1,
      read_message_id: before > 0 ? chat.read_message_id : chat.last_message?.message_id,
    });
  }
  if (message.new_chat_title || message.new_chat_photo || message.delete_chat_photo) void chats.refresh(id);
  recount(message);
  history?.put(message, true);
  replyKeyboards.take(message);
}

/** How long joins and leaves in a chat are collected before its summary is loaded, in ms. */
const recount_ms = 200;
/** The chats whose summaries will be loaded soon, because people joined or left. */
const recounted = new Set<number>();

/**
 * Loads a chat's summary, which has the number of members, after somebody joined or left. Other events report when the
 * person themselves joins or leaves.
 */
function recount({ chat: { id }, new_chat_members = [], left_chat_member }: Message): void {
  const [who = left_chat_member] = new_chat_members;
  if (!who || who.id === me.value?.id || recounted.has(id)) return;
  recounted.add(id);
  setTimeout(() => {
    recounted.delete(id);
    if (chats.byId.has(id)) void chats.refresh(id);
  }, recount_ms);
}

function onDeleted(id: number, message: number): void {
  histories.get(id)?.remove(message);
  replyKeyboards.forget(id, message);
  for (const listener of deletionListeners) listener(id, message);
  const chat = chats.byId.get(id);
  const shown = [chat?.last_message?.message_id, chat?.pinned_message?.message_id];
  if (shown.includes(message)) void chats.refresh(id);
}

function onPinned({ chat_id, pinned_message }: StreamEvents['pinned']): void {
  // Ignores a pinned message that has only an id. A newer pin has already replaced it, and another event reports the
  // newer pin.
  if (pinned_message && !('date' in pinned_message)) return;
  chats.update(chat_id, { pinned_message: pinned_message && previewOf(pinned_message) });
}

/**
 * Loads the code that shares drafts. If it cannot be loaded, the next attempt is made when the stream is opened again.
 */
const withShared = (work: (shared: typeof import('./shared_drafts.js')) => Promise<void>): void =>
  void import('./shared_drafts.js').then(work).catch(() => {});

/**
 * Runs when the event stream opens. Loads outdated chat lists before the drafts, so that the lists are shown sooner.
 */
async function onOpen(areListsOutdated: boolean): Promise<void> {
  if (areListsOutdated) await chats.load();
  withShared(({ loadDrafts }) => loadDrafts());
}

const onEvent = (...[event, data]: LiveEvent<StreamEvents>): void => {
  switch (event) {
    case 'message':
      onMessage(data);
      break;
    case 'edited_message': {
      const chat = chats.byId.get(data.chat.id);
      if (chat?.last_message?.message_id === data.message_id)
        chats.update(chat.id, { last_message: previewOf(data) });
      if (chat?.pinned_message?.message_id === data.message_id)
        chats.update(chat.id, { pinned_message: previewOf(data) });
      histories.get(data.chat.id)?.put(data, false);
      break;
    }
    case 'message_deleted':
      onDeleted(data.chat_id, data.message_id);
      return;
    case 'pinned':
      onPinned(data);
      return;
    case 'chat_joined':
    case 'chat_settings':
      void chats.refresh(data.chat_id);
      return;
    case 'chat_left':
      chats.remove(data.chat_id);
      return;
    case 'chat_read':
      showRead(data.chat_id, data.message_id);
      return;
    case 'profile':
      void loadSelf();
      return;
    case 'chat_action':
      setDoing(data.chat_id, data.from_id, data);
      return;
    case 'scheduled_posts':
      scheduledIn.set({ chat: data.chat_id });
      return;
    case 'chat_draft':
      withShared(({ onDraft }) => onDraft(data));
      return;
    case 'message_draft':
      botDrafts.show(data.chat_id, data);
      return;
    case 'message_draft_stopped':
      botDrafts.stopped(data.chat_id, data.draft_id, data.kept);
      return;
    case 'callback_answer':
      noteAnswer(data);
      return;
    case 'reset':
      void chats.refresh(data.chat_id);
      void histories.get(data.chat_id)?.reset();
      void replyKeyboards.load(data.chat_id);
      return;
    default:
      return;
  }
  for (const listener of messageListeners) listener(data);
};

/**
 * Loads the messages of open chats again, because some may have arrived after they were loaded but before the stream
 * was open.
 */
function loadHistoriesAgain(): void {
  for (const history of histories.values())
    if (history.started || history.loading !== null) void history.reset();
}

/** Starts to follow all events. Returns a function that stops this. */
export function startChats(): () => void {
  void chats.loadPages();
  void restoreDrafts();
  void takeOver((message) => historyOf(message.chat).restore(message));
  let wasOpen = false;
  const stream = new LiveStream<StreamEvents>({
    path: '/api/stream',
    tellsUnseen: true,
    on: onEvent,
    state(open) {
      // Loads the chat lists and the person's data again, because the events do not report every change since they were
      // last loaded.
      if (open) void onOpen(connected.value !== 'open' || !chats.loaded);
      if (open && connected.value === 'cut') void loadSelf();
      if (open && !wasOpen) loadHistoriesAgain();
      wasOpen ||= open;
      connected.set(open ? 'open' : 'cut');
      if (open) for (const history of histories.values()) history.resume();
    },
  });
  // Loads the list again when the page becomes visible, because the person may have read messages in other windows and
  // the events about this can be lost.
  const onVisible = () => {
    if (document.visibilityState === 'visible' && chats.loaded) void chats.load();
  };
  document.addEventListener('visibilitychange', onVisible);
  return () => {
    stream.close();
    document.removeEventListener('visibilitychange', onVisible);
  };
}
