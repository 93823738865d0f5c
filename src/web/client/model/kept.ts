/**
 * Stores the unsent messages and the drafts of the signed-in person in this browser, so that they are not lost when the
 * page is reloaded. Each account has its own database, which is emptied at sign-out. If the browser has no IndexedDB,
 * messages and drafts last until the page is closed.
 */
import { randomName } from '../clipboard.js';
import { leaving, me } from '../session.js';
import type { Message, MessageEntity } from '../types.js';
import { bytesOf } from './attachments.js';

/** A message that the service has not confirmed. */
export interface KeptMessage {
  /** The idempotency key. A message that is sent twice with the same key appears once. */
  readonly key: string;
  readonly chat: number;
  readonly text: string;
  readonly entities?: readonly MessageEntity[];
  /** The file, or the files of an album. Absent if the message has only text. */
  readonly files?: readonly File[];
  /** The length of a voice message in seconds. */
  readonly seconds?: number;
  /**
   * The id of the send. Files of several kinds are sent as several messages with the same id, and no message overtakes
   * another.
   */
  readonly send?: string;
  /**
   * The quoted message. After a reload, the quoted message has no contents, because quoted contents are never stored.
   */
  readonly replyTo?: Message;
  /** When the person sent the message, in ms. Increases with each message of a window. */
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
  /** The version that the service gave the draft. Absent in drafts of earlier versions of the application. */
  readonly version?: number;
  /** Whether the service may not have the text. */
  readonly isUnsaved?: boolean;
  /** The texts that the service may have stored although their calls failed. */
  readonly sent?: readonly string[];
}

const messages_max = 100;
const messages_bytes_max = 64 * 1_048_576;
const draft_length_max = 16_384;
const message_bytes = 1_024;
const entity_bytes = 128;

/** The id of this window. The next window takes over the messages of a closed window. */
const ownWindow = randomName();

/** The sizes of the unsent messages of this window, by key. */
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

/** Runs one transaction. Returns the result of the request that `work` made, or undefined if the storage failed. */
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
      // Commits explicitly. Otherwise the browser aborts the transaction if the page is closed now.
      transaction.commit();
    } catch {
      // A browser that removes the files of a database also closes the database. Every use of the database then fails.
      resolve(undefined);
    }
  });
}

type Content = Pick<KeptMessage, 'text' | 'entities' | 'files'>;

const sizeOf = ({ text, entities = [], files }: Content) =>
  message_bytes + text.length + entity_bytes * entities.length + bytesOf(files);

/** Whether the outbox has room for further messages. The messages of one send always fit into an empty outbox. */
export function hasRoom(messages: readonly Content[]): boolean {
  const bytes = [...sizes.values(), ...messages.map(sizeOf)].reduce((sum, size) => sum + size, 0);
  return sizes.size === 0 || (sizes.size + messages.length <= messages_max && bytes <= messages_bytes_max);
}

/** Returns a quoted message without its contents, because the contents may include the token of a bot. */
const withoutContents = ({ message_id, date, chat, from }: Message): Message => ({
  ...{ message_id, date, chat },
  ...(from && { from }),
});

/**
 * Stores a message until `forgetMessage` is called. Resolves when the message is stored, or when the storage has
 * failed.
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

/** Stores a draft. Removes a draft with an empty text that the service has. */
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
 * Runs `work` when the given window is closed. In a browser without locks, runs `work` immediately, because such a
 * browser cannot detect that a window was closed.
 */
const afterClose = (window: string, work: () => Promise<void>): Promise<void> =>
  navigator.locks ? navigator.locks.request(lockOf(window), work) : work();

/**
 * Passes the unsent messages of closed windows to this window, oldest first. If another open window has unsent
 * messages, waits until that window is closed.
 */
export async function takeOver(take: (message: KeptMessage) => void): Promise<void> {
  void navigator.locks?.request(lockOf(ownWindow), () => new Promise(() => {}));
  const all = async () => (await transact<StoredMessage[]>('outbox', (rows) => rows.getAll())) ?? [];
  for (const window of new Set((await all()).map((row) => row.window))) {
    if (window === ownWindow) continue;
    void afterClose(window, async () => {
      // Reads again, because a third window may have taken over the messages.
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
  // Takes the person's id from the token if the person is unknown. This happens if the token was revoked while the page
  // was closed.
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
