/**
 * Holds the loaded messages of one chat: a part of its history without gaps, followed by the messages that are being
 * sent. Pages of the history and events of the stream may arrive in any order, and more than once. The later state of a
 * message wins, and a deleted message stays deleted.
 */
import { ApiFailure, call, get, isRefusal } from '../api.js';
import { randomName } from '../clipboard.js';
import { reasonOf } from '../failures.js';
import { say } from '../notes.js';
import { Cell, Signal } from '../signal.js';
import type { Author, Message, Page, StoredUploads } from '../types.js';
import { t } from '../words.js';
import { bytesOf, formOf, groupsOf, Tray, uploadActionOf } from './attachments.js';
import { draftOf, setDraft } from './drafts.js';
import { forgetMessage, hasRoom, type KeptMessage, keepMessage } from './kept.js';
import { writeMarks } from './marks.js';
import { people } from './people.js';

export interface Outgoing extends KeptMessage {
  /** How many bytes of the files have been uploaded. */
  readonly uploaded: Cell<number>;
  failed?: string;
  /** Aborts the call that sends the message. Absent until the call begins. */
  stop?: AbortController;
  /**
   * Whether sending failed because there was no connection. In this case, the message is sent again when the connection
   * is back.
   */
  lost?: boolean;
}

/**
 * The service forgets idempotency keys after 24 hours. An older message is therefore sent again only if the person asks
 * for it.
 */
const resent_ms_max = 23 * 3_600_000;

interface StreamedMessage {
  readonly at: number;
  readonly message: Message;
  readonly isNew: boolean;
}

/** What the person sends at once. Files of several kinds become several messages. */
type Draft = Pick<KeptMessage, 'text' | 'entities' | 'files' | 'seconds' | 'replyTo' | 'send'>;

const stored_ms_max = 3_000;

const page = 50;
/** The messages of an album have consecutive ids, because the service sends them together. */
const album_items_max = 10;
const streamed_max = 2_000;
/**
 * The maximum number of loaded messages. If scrolling loads more, messages at the opposite end are dropped. They are
 * loaded again when the person scrolls back.
 */
const loaded_max = 4_000;

/** The value of `order` that was given to the last message. */
let lastOrder = 0;

/** The number of the latest event or load. Events and loads are numbered together, in the order in which they begin. */
let clock = 0;

export class History extends Signal {
  readonly chat: number;
  /** The messages in order of id. */
  messages: Message[] = [];
  outgoing: Outgoing[] = [];
  atStart = false;
  atEnd = false;
  /** The files attached to the message that the person writes. */
  readonly tray = new Tray();
  loading: 'older' | 'newer' | 'newest' | 'around' | null = null;
  failed = '';
  /**
   * Messages that the event stream delivered recently. A page that was requested before the delivery may contain older
   * versions of these messages.
   */
  readonly #streamed = new Map<number, StreamedMessage>();
  #again = false;
  readonly #deletedAt = new Map<number, number>();
  #sending: Promise<unknown> = Promise.resolve();

  /** Tells the other people in the chat what the person is doing. */
  readonly #tell: (action: string) => void;

  constructor(chat: number, tell: (action: string) => void = () => {}) {
    super();
    this.chat = chat;
    this.#tell = tell;
  }

  get started(): boolean {
    return this.messages.length > 0 || this.atEnd;
  }

  find(id: number): Message | undefined {
    return this.messages[this.#indexOf(id)];
  }

  /** Returns all messages of the album to which the message belongs, or only the message itself. */
  together(message: Message): readonly Message[] {
    const album = message.media_group_id;
    if (album === undefined) return [message];
    return this.messages.filter((one) => one.media_group_id === album);
  }

  get first(): number {
    return this.messages[0]?.message_id ?? 0;
  }

  get last(): number {
    return this.messages.at(-1)?.message_id ?? 0;
  }

  /** Resolves when no page is being loaded. */
  idle(): Promise<void> {
    if (this.loading === null) return Promise.resolve();
    return new Promise((resolve) => {
      const stop = this.subscribe(() => {
        if (this.loading !== null) return;
        stop();
        resolve();
      });
    });
  }

  /** Adds a new message, or replaces a changed message. */
  put(message: Message, isNew: boolean): void {
    const id = message.message_id;
    this.#note(id, message, isNew);
    if (this.#deletedAt.has(id)) return;
    const at = this.#indexOf(id);
    if (at >= 0) this.messages = this.messages.with(at, message);
    // Adds a new message only if the newest messages are loaded, because there would otherwise be a gap. A message that
    // is not added now is loaded when the person scrolls to it.
    else if (isNew && this.atEnd) {
      this.messages = sorted([...this.messages, message]);
      if (this.messages.length > loaded_max + page * 10) this.#letGoOldest(loaded_max);
    }
    this.changed();
  }

  remove(id: number): void {
    this.#deletedAt.set(id, ++clock);
    this.messages = this.messages.filter((message) => message.message_id !== id);
    this.changed();
  }

  loadNewest(): Promise<void> {
    return this.#load('newest', 0, (found, isLast) => {
      const overlaps = this.messages.length > 0 && (found.at(-1)?.message_id ?? 0) <= this.last;
      if (!overlaps) {
        this.messages = [];
        this.atStart = isLast;
      }
      this.atEnd = true;
    });
  }

  loadOlder(): Promise<void> {
    if (this.atStart || !this.started) return Promise.resolve();
    return this.#load('older', this.first, (_, isLast) => {
      this.atStart = isLast;
    });
  }

  /**
   * Loads the next newer messages. Deleted messages and restarts of the service leave gaps in the ids. If the requested
   * ids have no messages, loads the newest page instead.
   */
  async loadNewer(): Promise<void> {
    if (this.atEnd) return;
    const last = this.last;
    await this.#load('newer', last + page + 1, () => {}, last + 1);
    if (this.last === last && !this.failed) await this.loadNewest();
  }

  /** Loads the messages around a given message. Returns false if this message no longer exists. */
  async show(id: number): Promise<boolean> {
    if (this.find(id)) return true;
    // Also loads messages with smaller ids, because the message may be in the middle of an album.
    const least = id - album_items_max;
    const take = (found: readonly Message[], isLast: boolean) => {
      const newest = found[0]?.message_id ?? 0;
      this.messages = [];
      this.atStart = isLast;
      this.atEnd = newest < id;
    };
    await this.#load('around', id + page / 2, take, least);
    return this.find(id) !== undefined;
  }

  /**
   * Loads the messages around the first message with an id above `mark`. `newest` is the id of the chat's newest
   * message.
   */
  async showUnread(mark: number, newest: number): Promise<void> {
    if (this.atEnd && (this.atStart || this.first <= mark)) return this.loadNewest();
    const take = (found: readonly Message[], isLast: boolean) => {
      this.messages = [];
      this.atStart = isLast;
      this.atEnd = (found[0]?.message_id ?? 0) >= newest;
    };
    await this.#load('around', mark + page / 2, take, mark - album_items_max);
    // If all loaded messages have ids up to `mark`, loads newer messages.
    if (this.last <= mark) await this.loadNewer();
  }

  /**
   * Loads the messages again after events were missed, because missed events cannot be sent again. Loads the newest
   * page now, and older messages when the person scrolls to them.
   */
  async reset(): Promise<void> {
    this.messages = [];
    this.atStart = false;
    this.atEnd = false;
    // If the newest page is already being loaded, its answer may be outdated. The page is then loaded once more.
    if (this.loading === 'newest') this.#again = true;
    else await this.loadNewest();
  }

  /**
   * Reads messages with ids below `before`, newest first. Stops at the id `least` or after a full page. `isLast` means
   * that there are no older messages.
   */
  async #read(before: number, least: number): Promise<{ found: Message[]; isLast: boolean }> {
    const found: Message[] = [];
    for (let at = before > 0 ? `&before=${before}` : ''; ; ) {
      const path = `/api/chats/${this.chat}/messages?limit=${page}${at}`;
      const { items, next_cursor, authors } = await get<Page<Message> & { authors?: Author[] }>(path);
      people.take(authors ?? []);
      found.push(...items);
      const oldest = found.at(-1);
      const isOneAlbum = inOneAlbum(found[0], oldest);
      const reached = items.length > 0 && (oldest?.message_id ?? 0) <= least && !isOneAlbum;
      if (next_cursor === undefined || reached || found.length >= page)
        return { found, isLast: next_cursor === undefined };
      at = `&cursor=${next_cursor}`;
    }
  }

  async #load(
    what: NonNullable<History['loading']>,
    before: number,
    take: (found: readonly Message[], isLast: boolean) => void,
    least = Number.POSITIVE_INFINITY,
  ) {
    if (this.loading === what) return;
    this.loading = what;
    this.failed = '';
    const began = ++clock;
    // Removes the newest messages before the older ones are added. The list can keep its scroll position only if each
    // change adds or removes rows at one end.
    if (what === 'older' && this.messages.length > loaded_max) {
      this.messages = this.messages.slice(0, loaded_max);
      this.atEnd = false;
    }
    this.changed();
    try {
      const { found, isLast } = await this.#read(before, least);
      const last = this.last;
      take(found, isLast);
      this.#merge(found, began);
      this.#letGoCutAlbum();
      if (what === 'newer' && found.length > 0 && (found[0]?.message_id ?? 0) < last) this.atEnd = true;
    } catch (error) {
      // A direct chat that was not started has no history.
      if (error instanceof ApiFailure && error.status === 404) this.atStart = this.atEnd = true;
      else this.failed = reasonOf(error);
    } finally {
      this.loading = null;
      this.changed();
    }
    if (what === 'newer' && this.messages.length > loaded_max) {
      // Removes the oldest messages only after the new ones are drawn. Otherwise a list that is scrolled to its end
      // would become shorter and move.
      await new Promise((resolve) => setTimeout(resolve, 50));
      this.#letGoOldest(loaded_max);
      this.changed();
    }
    if (!this.#again) return;
    this.#again = false;
    await this.loadNewest();
  }

  #letGoOldest(keep: number): void {
    if (this.messages.length <= keep) return;
    this.messages = this.messages.slice(-keep);
    this.atStart = false;
    this.#letGoCutAlbum();
  }

  /**
   * Removes the first messages if they are part of an album that may begin earlier. When older messages are loaded, the
   * whole album is loaded.
   */
  #letGoCutAlbum(): void {
    if (this.atStart) return;
    const [oldest] = this.messages;
    const next = this.messages.findIndex((message) => !inOneAlbum(oldest, message));
    if (next > 0) this.messages = this.messages.slice(next);
  }

  #note(id: number, message: Message, isNew: boolean): void {
    const known = this.#streamed.get(id);
    this.#streamed.delete(id);
    this.#streamed.set(id, { at: ++clock, message, isNew: isNew || known?.isNew === true });
    const [oldest] = this.#streamed.keys();
    if (this.#streamed.size > streamed_max && oldest !== undefined) this.#streamed.delete(oldest);
  }

  #merge(found: readonly Message[], began: number): void {
    const byId = new Map(this.messages.map((message) => [message.message_id, message]));
    for (const message of found) {
      const streamed = this.#streamed.get(message.message_id);
      byId.set(message.message_id, streamed && streamed.at > began ? streamed.message : message);
    }
    // Adds the messages that arrived while the newest page was being loaded.
    const newest = found[0]?.message_id ?? 0;
    if (this.atEnd)
      for (const [id, { at, message, isNew }] of this.#streamed)
        if (isNew && at > began && id > newest) byId.set(id, message);
    for (const id of this.#deletedAt.keys()) byId.delete(id);
    this.messages = sorted([...byId.values()]);
  }

  #indexOf(id: number): number {
    let [low, high] = [0, this.messages.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = this.messages[middle]?.message_id ?? 0;
      if (found === id) return middle;
      if (found < id) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /**
   * Shows messages immediately, and sends them after all earlier unsent messages. Returns false if there are too many
   * unsent messages.
   */
  send(given: Draft): boolean {
    const drafts = draftsOf(given, randomName());
    if (!hasRoom(drafts)) {
      say(t('outbox_full'));
      return false;
    }
    for (const draft of drafts) {
      lastOrder = Math.max(Date.now(), lastOrder + 1);
      const message = { ...draft, chat: this.chat, key: randomName(), order: lastOrder };
      this.#sending = Promise.all([this.#sending, keepMessage(message)]);
      this.retry(this.#show(message));
    }
    return true;
  }

  /**
   * Shows a message that an earlier window did not send. Sends it now, unless the service has refused it or it is too
   * old.
   */
  restore(message: KeptMessage): void {
    const outgoing = this.#show(message);
    if (outgoing.failed === undefined && Date.now() - outgoing.order > resent_ms_max)
      outgoing.failed = t('not_sent');
    if (outgoing.failed === undefined) this.retry(outgoing);
  }

  #show(message: KeptMessage): Outgoing {
    const outgoing = { ...message, uploaded: new Cell(0) };
    this.outgoing = [...this.outgoing, outgoing].sort((a, b) => a.order - b.order);
    this.changed();
    return outgoing;
  }

  /**
   * Sends a message again, together with the other unsent messages that the person sent at the same time. First sends
   * the earlier messages that failed because there was no connection.
   */
  retry(outgoing: Outgoing): void {
    const at = this.outgoing.indexOf(outgoing);
    for (const [i, one] of this.outgoing.entries()) {
      const isFailedPart = one.failed !== undefined && ofOneSend(one, outgoing);
      if (one !== outgoing && !isFailedPart && !(one.lost && i < at)) continue;
      one.failed = undefined;
      one.lost = false;
      one.stop = undefined;
      one.uploaded.set(0);
      this.#sending = this.#sending.then(() => this.#deliver(one));
    }
    this.changed();
  }

  /** Sends all messages again that failed because there was no connection, in order. */
  resume(): void {
    const last = this.outgoing.findLast(({ lost }) => lost);
    if (last) this.retry(last);
  }

  /** Removes a message from the unsent messages, because it was sent or the person does not want to send it. */
  discard(outgoing: Outgoing): void {
    forgetMessage(outgoing.key);
    this.#hide(outgoing);
  }

  #hide(outgoing: Outgoing): void {
    this.outgoing = this.outgoing.filter((one) => one !== outgoing);
    this.changed();
  }

  /**
   * Stops sending a message, and the later messages that the person sent at the same time. They stay in the list as
   * unsent messages, even after a reload.
   */
  cancel(outgoing: Outgoing): void {
    outgoing.stop?.abort();
    this.#fail(outgoing, t('not_sent'), true);
  }

  /**
   * Marks a message as unsent, and also the later messages that the person sent at the same time. If `isFinal` is true,
   * they are not sent after a reload either.
   */
  #fail(outgoing: Outgoing, reason: string, isFinal: boolean): void {
    const later = this.outgoing.filter(
      (one) => one.failed === undefined && one.order > outgoing.order && ofOneSend(one, outgoing),
    );
    for (const one of [outgoing, ...later]) {
      one.failed = one === outgoing ? reason : t('not_sent');
      one.lost = outgoing.lost;
      if (isFinal) void keepMessage(keptOf(one));
    }
    this.changed();
  }

  /**
   * Moves an unsent message back to the composer, together with the other unsent messages that the person sent at the
   * same time. Returns their files and text, or null if the composer has no room for them.
   */
  recall(outgoing: Outgoing): Draft | null {
    const parts = this.outgoing.filter(
      (one) => one === outgoing || (one.failed !== undefined && ofOneSend(one, outgoing)),
    );
    const files = parts.flatMap((one) => one.files ?? []);
    if (!this.tray.add(files)) return null;
    const text = parts.map((one) => writeMarks(one.text, one.entities)).join('');
    setDraft(this.chat, [draftOf(this.chat), text].filter(Boolean).join('\n'));
    for (const one of parts) this.discard(one);
    return { text, files, replyTo: parts.find(({ replyTo }) => replyTo)?.replyTo };
  }

  async #deliver(outgoing: Outgoing): Promise<void> {
    // The person may have stopped the message while it was waiting to be sent.
    if (outgoing.failed !== undefined || !this.outgoing.includes(outgoing)) return;
    // If an earlier message failed because there was no connection, this message fails too. Otherwise it could be sent
    // before the earlier message when the connection returns.
    const lost = this.outgoing.find((one) => one.lost || one === outgoing);
    if (lost?.lost) {
      outgoing.failed = lost.failed;
      outgoing.lost = true;
      this.changed();
      return;
    }
    outgoing.stop = new AbortController();
    const { signal } = outgoing.stop;
    try {
      const sent = await this.#post(outgoing, signal);
      this.discard(outgoing);
      for (const message of sent) if (!this.find(message.message_id)) this.put(message, true);
    } catch (error) {
      if (signal.aborted) return;
      outgoing.lost = error instanceof TypeError;
      // Unless the service has refused the messages, they stay stored and are sent again after a reload.
      this.#fail(outgoing, reasonOf(error), isRefusal(error));
    }
  }

  async #post(outgoing: Outgoing, signal: AbortSignal): Promise<Message[]> {
    const { key, text, entities, files, seconds, replyTo, uploaded } = outgoing;
    const reply = replyTo?.message_id;
    const path = `/api/chats/${this.chat}/${files && files.length > 1 ? 'albums' : 'messages'}`;
    if (!files) {
      const body = { text, entities, reply_to_message_id: reply };
      return [await call<Message>('POST', path, body, { key, signal })];
    }
    await checkStored(bytesOf(files));
    const action = uploadActionOf(files);
    const onProgress = (bytes: number) => {
      uploaded.set(bytes);
      this.#tell(action);
    };
    const options = { key, signal, onProgress };
    const form = formOf(files, text, entities, reply, seconds);
    return [await call<Message | Message[]>('POST', path, form, options)].flat();
  }

  /** Hides the unsent copy of a message when the stream reports the message before the call has returned. */
  settle(message: Message): void {
    // If the call has already returned, the message is in the history, and no unsent copy needs to be hidden.
    if (this.find(message.message_id)) return;
    const text = message.text ?? message.caption ?? '';
    const mine = this.outgoing.find(
      (one) => one.stop && one.failed === undefined && one.text.trim() === text.trim(),
    );
    // Only hides the unsent copy. It stays stored until the call has returned, because this event may be about another
    // message with the same text.
    if (mine) this.#hide(mine);
  }
}

/**
 * Checks before an upload whether the person may store this many more bytes. Throws the error that the service would
 * return. Skips the check if the service does not answer in time, because the service checks every upload itself.
 */
async function checkStored(bytes: number): Promise<void> {
  const asked = get<StoredUploads>('/api/me/uploads', AbortSignal.timeout(stored_ms_max));
  const stored = await asked.catch(() => undefined);
  const { bytes: present = 0, bytes_max = Number.POSITIVE_INFINITY } = stored ?? {};
  if (present + bytes > bytes_max)
    throw new ApiFailure(400, `stored files of the owner would exceed ${bytes_max} bytes`);
}

/** Divides what the person sends at once into messages, in order. The first message has the text and the quote. */
function draftsOf({ text, entities, files, seconds, replyTo }: Draft, send: string): Draft[] {
  if (!files?.length) return [{ text, entities, replyTo }];
  return groupsOf(files).map((group, i) =>
    i === 0 ? { text, entities, files: group, seconds, replyTo, send } : { text: '', files: group, send },
  );
}

const ofOneSend = (one: KeptMessage, other: KeptMessage): boolean =>
  one.send !== undefined && one.send === other.send;

/** Returns whether both messages belong to the same album. */
export const inOneAlbum = (
  one: Pick<Message, 'media_group_id'> | undefined,
  other: Pick<Message, 'media_group_id'> | undefined,
): boolean => one?.media_group_id !== undefined && one.media_group_id === other?.media_group_id;

/** Removes the fields that the browser does not store. */
const keptOf = ({ uploaded, lost, stop, ...message }: Outgoing): KeptMessage => message;

function sorted(messages: Message[]): Message[] {
  const byId = new Map(messages.map((message) => [message.message_id, message]));
  return [...byId.values()].sort((a, b) => a.message_id - b.message_id);
}
