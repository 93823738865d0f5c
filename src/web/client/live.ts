/** An event stream that comes back where it was cut: read with `fetch`, since the browser's own reader sends no token. */
import { createParser } from 'eventsource-parser';
import { signOut, token } from './session.js';

export interface LiveOptions {
  readonly path: string;
  /** Whether the service is to know when nobody sees this window: it notifies the person elsewhere then. */
  readonly tellsUnseen?: boolean;
  on(event: string, data: unknown): void;
  /** Whether events come in now. */
  state(open: boolean): void;
}

/** The service says something every 15 s: a connection that is silent for longer is dead. */
const silence_ms_max = 40_000;
const rest_ms_max = 8_000;
/** Who looks into another tab for a moment has not gone. */
const unseen_ms = 3_000;

/** Opens it and keeps it open. The returned function ends it. */
export function openLive({ path, tellsUnseen = false, on, state }: LiveOptions): () => void {
  const end = new AbortController();
  let lastId = '';
  let wake = () => {};
  let unseen = tellsUnseen && document.hidden;
  /** Ends the present connection for one that says anew whether the window is seen; nothing is missed meanwhile. */
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

  /** Reads until the stream ends or falls silent. True when anything came. */
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
          // Only what was taken up need not be told again.
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
