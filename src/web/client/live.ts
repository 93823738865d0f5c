/** An event stream that reconnects. It is read with `fetch`, because EventSource cannot send the token. */
import { createParser } from 'eventsource-parser';
import { signOut, token } from './session.js';

export interface LiveOptions {
  readonly path: string;
  /** Whether the service is told that this window is in the background; it then sends push notifications. */
  readonly tellsUnseen?: boolean;
  on(event: string, data: unknown): void;
  /** Called with true when events arrive, and with false when the stream is broken. */
  state(open: boolean): void;
}

/** The service sends something every 15 s: a connection that is silent for longer than this is dead. */
const silence_ms_max = 40_000;
const rest_ms_max = 8_000;
/** A window hidden for less than this counts as seen. */
const unseen_ms = 3_000;

/** Opens the stream and keeps it open. The returned function closes it. */
export function openLive({ path, tellsUnseen = false, on, state }: LiveOptions): () => void {
  const end = new AbortController();
  let lastId = '';
  let wake = () => {};
  let unseen = tellsUnseen && document.hidden;
  /** Reconnects with the current visibility of the window. No event is lost. */
  let swap = () => {};
  let cutNow = () => {};
  let swapping = false;

  const rest = (ms: number) =>
    new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  /** Reads until the stream ends or is silent for too long. Returns whether any event arrived. */
  async function read(): Promise<boolean> {
    const cut = new AbortController();
    const stop = () => cut.abort();
    swapping = false;
    cutNow = stop;
    swap = () => {
      swapping = true;
      stop();
    };
    end.signal.addEventListener('abort', stop);
    let watch = setTimeout(stop, silence_ms_max);
    let came = false;
    try {
      const headers: Record<string, string> = { Authorization: `Bearer ${token.value}` };
      if (lastId !== '') headers['Last-Event-ID'] = lastId;
      const answer = await fetch(unseen ? `${path}?background=true` : path, {
        headers,
        signal: cut.signal,
        cache: 'no-store',
      });
      if (answer.status === 401) signOut();
      if (!answer.ok || !answer.body) return false;
      const parser = createParser({
        onEvent({ id, event, data }) {
          came = true;
          if (event === 'ready') state(true);
          on(event ?? 'message', JSON.parse(data));
          // Set after the event was handled, so that an unhandled one is sent again.
          if (id) lastId = id;
        },
      });
      const decoder = new TextDecoder();
      const reader = answer.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return came;
        clearTimeout(watch);
        watch = setTimeout(stop, silence_ms_max);
        parser.feed(decoder.decode(value, { stream: true }));
      }
    } catch {
      return came;
    } finally {
      clearTimeout(watch);
      cut.abort();
      end.signal.removeEventListener('abort', stop);
      if (!swapping) state(false);
    }
  }

  async function run(): Promise<void> {
    let pause = 500;
    while (!end.signal.aborted) {
      pause = (await read()) ? 500 : Math.min(pause * 2, rest_ms_max);
      if (!end.signal.aborted && !swapping) await rest(pause);
    }
  }

  let hiding: ReturnType<typeof setTimeout> | undefined;
  const look = () => {
    clearTimeout(hiding);
    const change = () => {
      unseen = document.hidden;
      swap();
      wake();
    };
    if (document.hidden && !unseen) hiding = setTimeout(change, unseen_ms);
    else if (!document.hidden && unseen) change();
  };
  const awake = () => wake();
  const offline = () => cutNow();
  addEventListener('online', awake);
  addEventListener('offline', offline);
  if (tellsUnseen) document.addEventListener('visibilitychange', look);
  void run();
  return () => {
    end.abort();
    wake();
    clearTimeout(hiding);
    removeEventListener('online', awake);
    removeEventListener('offline', offline);
    document.removeEventListener('visibilitychange', look);
  };
}
