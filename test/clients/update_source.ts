/** A reader of `streamUpdates` that validates and stores the events. Tests can cut the stream. */
import { Agent, request } from 'undici';
import { updateEvents } from '../../src/wire/stream_results.js';
import { eventually } from './event_source.js';

// biome-ignore lint/suspicious/noExplicitAny: updates of every shape
type Update = any;

export interface UpdateSource {
  readonly status: number;
  /** The body of the refusal, if the stream was refused. */
  readonly refused: string;
  readonly updates: Update[];
  /** The data of the event `end`. */
  readonly end: () => { readonly error_code: number; readonly description: string } | undefined;
  /** Returns the complete text that the stream has sent so far. */
  readonly text: () => string;
  /** Resolves when the connection has ended. */
  readonly over: Promise<void>;
  /** Closes the connection without notice, like a network failure. */
  cut(): void;
  /** Pauses or resumes reading from the connection. */
  pause(): void;
  resume(): void;
  /** Returns the updates as soon as there are at least `count`. */
  received(count: number): Promise<Update[]>;
  /** Returns the texts of all messages that have arrived so far. */
  texts(): string[];
}

export interface SourceOptions {
  readonly params?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly onUpdate?: (update: Update) => void;
}

export async function openUpdates(
  url: string,
  token: string,
  { params = {}, headers = {}, onUpdate }: SourceOptions = {},
): Promise<UpdateSource> {
  const query = new URLSearchParams(params as Record<string, string>);
  const dispatcher = new Agent({ bodyTimeout: 0 });
  const { statusCode, body } = await request(`${url}/bot${token}/streamUpdates?${query}`, {
    dispatcher,
    headers,
  });
  const updates: Update[] = [];
  let [all, rest, refused] = ['', '', ''];
  let end: ReturnType<UpdateSource['end']>;
  const take = (block: string) => {
    const [, id, event = '', data = ''] = /^(?:id: (.*)\n)?event: (.*)\ndata: (.*)$/.exec(block) ?? [];
    if (event === '') return;
    const read = updateEvents[event as keyof typeof updateEvents].parse(JSON.parse(data));
    if (!('update_id' in read)) {
      end = read;
      return;
    }
    if (id !== `${read.update_id}`) throw new Error(`the id is ${id} for ${data}`);
    updates.push(read);
    onUpdate?.(read);
  };
  if (statusCode !== 200) refused = await body.text();
  body.setEncoding('utf8');
  const over = new Promise<void>((resolve) => {
    body.on('close', resolve);
    body.on('error', () => resolve());
    if (statusCode !== 200) resolve();
  });
  body.on('data', (chunk: string) => {
    all += chunk;
    rest += chunk;
    const blocks = rest.split('\n\n');
    rest = blocks.pop() as string;
    for (const block of blocks) take(block);
  });
  return {
    ...{ status: statusCode, refused, updates, over },
    end: () => end,
    text: () => all,
    cut: () => void dispatcher.destroy().catch(() => undefined),
    pause: () => void body.pause(),
    resume: () => void body.resume(),
    received: (count) =>
      eventually(() => {
        if (updates.length < count) throw new Error(`${updates.length} of ${count} updates arrived`);
        return updates;
      }),
    texts: () => updates.flatMap(({ message }) => (message?.text === undefined ? [] : [message.text])),
  };
}
