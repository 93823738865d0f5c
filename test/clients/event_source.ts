/** A reader of `GET /api/stream` that validates and stores the events. Tests can cut and resume the stream. */
import { Agent, request } from 'undici';
import { expect, vi } from 'vitest';
import { holdEvent } from '../support/results.js';

export interface ServerEvent {
  readonly id: string;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: events of every shape
  readonly data: any;
}

export interface EventSource {
  /** All events except `ready` since the stream was first opened, including the events before a cut. */
  readonly events: ServerEvent[];
  /**
   * Resumes the stream after the last event id, and waits until the service sends `ready`. If `url` is given, connects
   * to this address.
   */
  open(url?: string): Promise<void>;
  /** Closes the connection without notice, like a network failure. */
  cut(): void;
  /** Returns the first matching event at index `after` or later. Fails after 15 s. */
  received(matches: (event: ServerEvent) => boolean, after?: number): Promise<ServerEvent>;
}

function parseEvent(block: string): ServerEvent | null {
  const fields: Record<string, string> = {};
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
  }
  if (fields.event === undefined) return null;
  return { id: fields.id ?? '', event: fields.event, data: JSON.parse(fields.data ?? 'null') };
}

export const eventually = <T>(check: () => T | Promise<T>): Promise<T> =>
  vi.waitFor(check, { timeout: 15_000, interval: 10 });

export async function openEvents(
  url: string,
  token: string,
  /**
   * `ca` is the certificate to trust. `onEnd` is called when a stream ends, but not when the test cuts the stream.
   * `path` selects another stream.
   */
  more: {
    readonly ca?: string;
    readonly onEnd?: (why: 'end' | 'error') => void;
    readonly path?: string;
  } = {},
): Promise<EventSource> {
  const events: ServerEvent[] = [];
  const { path = '/api/stream' } = more;
  let at = url;
  let lastId = '';
  let connection: { readonly agent: Agent; live: boolean } | undefined;

  const cut = () => {
    if (!connection) return;
    connection.live = false;
    connection.agent.destroy().catch(() => undefined);
    connection = undefined;
  };

  async function open(next = at): Promise<void> {
    cut();
    at = next;
    const mine = {
      agent: new Agent({ bodyTimeout: 0, connect: more.ca ? { ca: more.ca } : {} }),
      live: true,
    };
    connection = mine;
    const headers = {
      authorization: `Bearer ${token}`,
      ...(lastId === '' ? {} : { 'last-event-id': lastId }),
    };
    const answer = await request(`${at}${path}`, { dispatcher: mine.agent, headers });
    expect(answer.statusCode).toBe(200);
    expect(answer.headers['content-type']).toBe('text/event-stream');
    let text = '';
    let ready = () => {};
    const isReady = new Promise<void>((resolve) => {
      ready = resolve;
    });
    answer.body.on('error', () => {
      if (mine.live) more.onEnd?.('error');
    });
    answer.body.on('end', () => {
      if (mine.live) more.onEnd?.('end');
    });
    answer.body.on('data', (chunk: Buffer) => {
      if (!mine.live) return;
      text += chunk.toString();
      const blocks = text.split('\n\n');
      text = blocks.pop() as string;
      for (const block of blocks) {
        const event = parseEvent(block);
        if (!event) continue;
        try {
          holdEvent(path, event.event, event.data);
        } catch (error) {
          // Throws the error from a timer, so that the test run fails. Without the timer, the error would only break
          // the connection.
          setImmediate(() => {
            throw error;
          });
        }
        if (event.id !== '') lastId = event.id;
        if (event.event === 'ready') ready();
        else events.push(event);
      }
    });
    await isReady;
  }

  await open();
  return {
    events,
    open,
    cut,
    received: (matches, after = 0) =>
      eventually(() => {
        const found = events.slice(after).find(matches);
        if (!found) throw new Error(`not received; last: ${JSON.stringify(events.slice(-3))}`);
        return found;
      }),
  };
}
