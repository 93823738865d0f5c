/**
 * Keeps an event stream open, and reconnects it when it breaks. Uses `fetch`, because EventSource cannot send the
 * token.
 */
import { createParser } from 'eventsource-parser';
import { signOut, token } from './session.js';
import type { PostStreamEvents, StreamEvents } from './types.js';

/** Maps the name of each event to its data. */
type Events = StreamEvents | PostStreamEvents;

export type LiveEvent<E extends Events> = { [Name in keyof E]: [event: Name, data: E[Name]] }[keyof E];

export interface LiveOptions<E extends Events> {
  readonly path: string;
  /**
   * Whether to tell the service when this window is in the background, so that the service then sends push
   * notifications.
   */
  readonly tellsUnseen?: boolean;
  on(...event: LiveEvent<E>): void;
  /** Called with true when the stream delivers events, and with false when it breaks. */
  state(open: boolean): void;
}

/** A connection that has sent nothing for this long counts as broken. The service sends something every 15 s. */
const silence_ms_max = 40_000;
const rest_ms_max = 8_000;
/** How long a hidden window still counts as visible. */
const unseen_ms = 3_000;

/**
 * Keeps a stream open until `close` is called. Waits up to `rest_ms_max` before it reconnects a broken stream.
 * Reconnects when the window becomes visible or hidden, because each request tells the service whether the window is
 * visible. No event is lost.
 */
export class LiveStream<E extends Events> {
  readonly #options: LiveOptions<E>;
  /** Removes the listeners and ends the loop when `close` is called. */
  readonly #end = new AbortController();
  #lastId = '';
  #unseen: boolean;
  #swapping = false;
  /** Aborts the current connection. */
  #cut = new AbortController();
  /** Ends the wait before the next connection. */
  #wake = () => {};
  #hiding: ReturnType<typeof setTimeout> | undefined;

  constructor(options: LiveOptions<E>) {
    this.#options = options;
    const { tellsUnseen = false } = options;
    const { signal } = this.#end;
    this.#unseen = tellsUnseen && document.hidden;
    addEventListener('online', () => this.#wake(), { signal });
    addEventListener('offline', () => this.#cut.abort(), { signal });
    if (tellsUnseen) document.addEventListener('visibilitychange', () => this.#look(), { signal });
    void this.#run();
  }

  close(): void {
    this.#end.abort();
    this.#cut.abort();
    this.#wake();
    clearTimeout(this.#hiding);
  }

  async #run(): Promise<void> {
    let pause = 500;
    while (!this.#end.signal.aborted) {
      pause = (await this.#read()) ? 500 : Math.min(pause * 2, rest_ms_max);
      if (!this.#end.signal.aborted && !this.#swapping) await this.#rest(pause);
    }
  }

  #rest(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #look(): void {
    clearTimeout(this.#hiding);
    const change = () => {
      this.#unseen = document.hidden;
      this.#swapping = true;
      this.#cut.abort();
      this.#wake();
    };
    if (document.hidden && !this.#unseen) this.#hiding = setTimeout(change, unseen_ms);
    else if (!document.hidden && this.#unseen) change();
  }

  /** Reads until the stream ends or has sent nothing for too long. Returns whether any event arrived. */
  async #read(): Promise<boolean> {
    const { path, on, state } = this.#options;
    const cut = new AbortController();
    this.#cut = cut;
    this.#swapping = false;
    let watch = setTimeout(() => cut.abort(), silence_ms_max);
    let came = false;
    const parser = createParser({
      onEvent: ({ id, event, data }) => {
        came = true;
        if (event === 'ready') state(true);
        on(...([event ?? 'message', JSON.parse(data)] as LiveEvent<E>));
        // Stores the id of an event only after the event was handled. If handling fails, the service thus sends the
        // event again.
        if (id) this.#lastId = id;
      },
    });
    try {
      const answer = await this.#connect(path, cut.signal);
      if (answer.status === 401) signOut(false);
      if (!answer.ok || !answer.body) return false;
      const decoder = new TextDecoder();
      const reader = answer.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return came;
        clearTimeout(watch);
        watch = setTimeout(() => cut.abort(), silence_ms_max);
        parser.feed(decoder.decode(value, { stream: true }));
      }
    } catch {
      return came;
    } finally {
      clearTimeout(watch);
      cut.abort();
      if (!this.#swapping) state(false);
    }
  }

  #connect(path: string, signal: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { Authorization: `Bearer ${token.value}` };
    if (this.#lastId !== '') headers['Last-Event-ID'] = this.#lastId;
    return fetch(this.#unseen ? `${path}?background=true` : path, { headers, signal, cache: 'no-store' });
  }
}
