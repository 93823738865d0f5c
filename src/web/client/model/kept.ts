/**
 * Stores the unsent messages and the drafts of the signed-in person in this browser, so that they survive a reload of
 * the page. Each account has its own database, which is emptied at sign-out. If the browser has no IndexedDB, messages
 * and drafts are lost when the page is closed.
 */
import { randomName } from '../clipboard.js';
import { leaving, me } from '../session.js';
import type { Message, MessageEntity } from '../types.js';
import { bytesOf } from './attachments.js';

/** A message that the service has not confirmed. */
export interface KeptMessage {
  /** The idempotency key. If a message is sent twice with the same key, it still appears once. */
  readonly key: string;
  readonly chat: number;
  readonly text: string;
  readonly entities?: readonly MessageEntity[];
  /** The file, or the files of an album. Absent if the message has only text. */
  readonly files?: readonly File[];
  /** The length of a voice message in seconds. */
  readonly seconds?: number;
  /**
   * An id that messages share if the person sent them at once, for instance files of several kinds. These messages are
   * sent in order.
   */
  readonly send?: string;
  /** The quoted message. After a reload it has no contents, because quoted contents are never stored. */
  readonly replyTo?: Message;
  /**
   * The Unix time in ms at which the person sent the message. Increased if necessary, so that it is greater than the
   * `order` of this window's previous message.
   */
  readonly order: number;
  /** Why the service refused the message. */
  readonly failed?: string;
}

type StoredMessage = KeptMessage & {
  readonly window: string;
  /** The picture of a message that an earlier version of the application stored. */
  readonly photo?: File;
};

interface StoredDraft {
  readonly chat: number;
  readonly text: string;
  /**
   * The version that the service gave to the draft. Absent in drafts that an earlier version of the application stored.
   */
  readonly version?: number;
  /** True until the service has confirmed that it stored the text. */
  readonly isUnsaved?: boolean;
  /** The texts that the service may have stored even though their calls failed. */
  readonly sent?: readonly string[];
}

const messages_max = 100;
const messages_bytes_max = 64 * 1_048_576;
const draft_length_max = 16_384;
const message_bytes = 1_024;
const entity_bytes = 128;

/**
 * The id of this window, under which its messages are stored. When the window is closed, another window takes over
 * these messages.
 */
const ownWindow = randomName();

/** The size of each unsent message of this window, keyed by idempotency key. */
const sizes = new Map<string, number>();
let opened: Promise<IDBDatabase | null> | undefined;
let isOver = false;

const nameOf = (account: number) => `petrel-${account}`;

function openDatabase(account: number): Promise<IDBDatabase | null> {
  return new Promise((resolve) => {
    try {
      const request = indexedDB.open(nameOf(account), 1);
      request.onupgradeneeded = () => {
        request.result.createObjectStore('outbox', { keyPath: 'key' });
        request.result.createObjectStore('drafts', { keyPath: 'chat' });
      };
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => resolve(null);
    } catch {
      resolve(null);
    }
  });
}

/** Runs one transaction. Returns the result of the request that `work` returned, or undefined if the storage failed. */
async function transact<T>(
  store: 'outbox' | 'drafts',
  work: (rows: IDBObjectStore) => IDBRequest<T>,
): Promise<T | undefined> {
  const account = me.value?.id;
  if (isOver || account === undefined) return undefined;
  opened ??= openDatabase(account);
  const database = await opened;
  if (!database || isOver) return undefined;
  return new Promise((resolve) => {
    try {
      const transaction = database.transaction(store, 'readwrite');
      const request = work(transaction.objectStore(store));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => resolve(undefined);
      // Commits explicitly. If the page is closed now, the browser would otherwise abort the transaction.
      transaction.commit();
    } catch {
      // If the browser has removed the files of a database, it has also closed the database, and every use of the
      // database fails.
      resolve(undefined);
    }
  });
}

type Content = Pick<KeptMessage, 'text' | 'entities' | 'files'>;

const sizeOf = ({ text, entities = [], files }: Content) =>
  message_bytes + text.length + entity_bytes * entities.length + bytesOf(files);

/**
 * Returns whether the outbox has room for these messages. An empty outbox has room for any messages that the person
 * sends at once.
 */
export function hasRoom(messages: readonly Content[]): boolean {
  const bytes = [...sizes.values(), ...messages.map(sizeOf)].reduce((sum, size) => sum + size, 0);
  return sizes.size === 0 || (sizes.size + messages.length <= messages_max && bytes <= messages_bytes_max);
}

/** Returns a quoted message without its contents, which may include the token of a bot. */
const withoutContents = ({ message_id, date, chat, from }: Message): Message => ({
  ...{ message_id, date, chat },
  ...(from && { from }),
});

/**
 * Stores a message until `forgetMessage` is called. Resolves when the message is stored, or when storing it has failed.
 */
export async function keepMessage(message: KeptMessage): Promise<void> {
  sizes.set(message.key, sizeOf(message));
  const replyTo = message.replyTo && withoutContents(message.replyTo);
  const row: StoredMessage = { ...message, ...(replyTo && { replyTo }), window: ownWindow };
  await transact('outbox', (rows) => rows.put(row));
}

export function forgetMessage(key: string): void {
  sizes.delete(key);
  void transact('outbox', (rows) => rows.delete(key));
}

/**
 * Stores a draft in this browser. If the text is empty and the service has stored the empty text too, removes the
 * draft.
 */
export function keepDraft(draft: StoredDraft): void {
  const { chat, isUnsaved } = draft;
  const text = draft.text.slice(0, draft_length_max);
  void transact<unknown>(
    'drafts',
    (rows) => (text === '' && !isUnsaved ? rows.delete(chat) : rows.put({ ...draft, text })) as IDBRequest,
  );
}

export const keptDrafts = async (): Promise<readonly StoredDraft[]> =>
  (await transact<StoredDraft[]>('drafts', (rows) => rows.getAll())) ?? [];

const lockOf = (window: string) => `petrel-window-${window}`;

/**
 * Runs `work` when the given window is closed. A browser without locks cannot detect this, so `work` then runs
 * immediately.
 */
const afterClose = (window: string, work: () => Promise<void>): Promise<void> =>
  navigator.locks ? navigator.locks.request(lockOf(window), work) : work();

/**
 * Takes over the unsent messages of every other window, oldest first. If another window is still open, waits until that
 * window is closed.
 */
export async function takeOver(take: (message: KeptMessage) => void): Promise<void> {
  void navigator.locks?.request(lockOf(ownWindow), () => new Promise(() => {}));
  const all = async () => (await transact<StoredMessage[]>('outbox', (rows) => rows.getAll())) ?? [];
  for (const window of new Set((await all()).map((row) => row.window))) {
    if (window === ownWindow) continue;
    void afterClose(window, async () => {
      // Reads the outbox again, because yet another window may have taken over the messages of the closed window.
      const rows = (await all()).filter((row) => row.window === window);
      for (const { photo, ...row } of rows.sort((a, b) => a.order - b.order)) {
        const message = photo ? { ...row, files: [photo] } : row;
        await keepMessage(message);
        take(message);
      }
    });
  }
}

/** Removes everything that is stored for the person who signs out. */
async function clear(token: string): Promise<void> {
  // The person is unknown if the token was revoked while the page was closed. In this case, reads the person's id from
  // the beginning of the token.
  const account = me.value?.id ?? Number.parseInt(token, 10);
  isOver = true;
  if (Number.isNaN(account)) return;
  const database = await (opened ?? openDatabase(account));
  if (!database) return;
  await new Promise<void>((resolve) => {
    const transaction = database.transaction(['outbox', 'drafts'], 'readwrite');
    for (const name of ['outbox', 'drafts']) transaction.objectStore(name).clear();
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => resolve();
  });
}
leaving.add(clear);
