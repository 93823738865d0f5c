/** Typed helpers for tests that run a bot against `petrel test-server`. Has no dependencies. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import type { Json, RecordedEntry } from './recorded_entry.js';
import { isBehaviour, type NamedCall, Names, type SavedRecording, type WorldNames } from './replay.js';

export type { Json, RecordedEntry } from './recorded_entry.js';
export type { NamedCall, SavedRecording } from './replay.js';

/** One of a world's chats, or the id of a chat. */
export type Chat = 'bot' | 'group' | 'channel' | number;

export interface WorldForm {
  /**
   * The names of the people, each of 2 to 16 lower-case letters. The default is `['ann']`. The first person owns the
   * bot and the chats.
   */
  readonly people?: readonly string[];
  /** Whether to make a public group with the bot as an administrator. */
  readonly group?: boolean;
  /** Whether to make a public channel with the bot as an administrator. */
  readonly channel?: boolean;
  /** Whether to turn on the bot's inline mode. */
  readonly inline?: boolean;
}

export interface EntryFilter {
  readonly kind?: RecordedEntry['kind'];
  readonly name?: string;
  /** The number `n` of an entry. Skips this entry and all earlier entries. */
  readonly after?: number;
}

/** A fault for the next calls of a method, or for the next webhook deliveries. */
export interface Fault {
  /** How long to delay the call or delivery, up to 60,000 ms. */
  readonly delay_ms?: number;
  /** The HTTP status of the answer that replaces the real one, from 400 to 599. */
  readonly status?: number;
  /** The `retry_after` in the answer, in seconds. The default is 1. */
  readonly retry_after?: number;
  /** If true, only the answer is replaced, and the call or delivery still takes effect. */
  readonly applied?: boolean;
  /** How many calls or deliveries get the fault, up to 1,000. The default is 1. */
  readonly times?: number;
}

interface WorldData {
  readonly world: number;
  readonly bot: { readonly id: number; readonly username: string; readonly token: string };
  readonly people: ReadonlyArray<{
    readonly name: string;
    readonly id: number;
    readonly username: string;
    readonly first_name: string;
    readonly token: string;
  }>;
  readonly chats: { readonly group?: number; readonly channel?: number };
}

/** Thrown when the server answers with an error. */
export class PetrelError extends Error {
  readonly status: number;
  readonly answer: Json;

  constructor(call: string, status: number, answer: Json) {
    super(`${call}: ${answer?.description ?? `status ${status}`}`);
    this.status = status;
    this.answer = answer;
  }
}

/** The contents of files, keyed by file name. */
export type Files = Readonly<Record<string, Uint8Array<ArrayBuffer> | string>>;

/** A file in the parameters of an action. */
export class Upload {
  readonly filename: string;
  readonly content: Uint8Array<ArrayBuffer> | string;

  constructor(filename: string, content: Uint8Array<ArrayBuffer> | string) {
    this.filename = filename;
    this.content = content;
  }
}

/** Adds the contents of files to recorded parameters. A recording contains only the names and sizes of files. */
function withFiles(params: Record<string, Json>, files: Files): Record<string, Json> {
  const filled = Object.entries(params).map(([name, value]) => {
    const filename = value?.filename;
    if (typeof filename !== 'string') return [name, value];
    const content = files[filename];
    if (content === undefined) throw new Error(`the recording needs the file ${filename}: pass it in files`);
    return [name, new Upload(filename, content)];
  });
  return Object.fromEntries(filled);
}

/** Returns a form if there is a file, and otherwise JSON. */
function bodyOf(params: object): Pick<RequestInit, 'headers' | 'body'> {
  const members = Object.entries(params).filter(([, value]) => value !== undefined);
  if (!members.some(([, value]) => value instanceof Upload))
    return { headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(params) };
  const form = new FormData();
  for (const [name, value] of members)
    if (value instanceof Upload) form.set(name, new Blob([value.content]), value.filename);
    else form.set(name, typeof value === 'object' ? JSON.stringify(value) : String(value));
  return { body: form };
}

type Call = (verb: string, path: string, params?: object) => Promise<Json>;

const callsTo =
  (url: string): Call =>
  async (verb, path, params) => {
    const response = await fetch(`${url}/api/test/${path}`, {
      method: verb,
      ...(params && bodyOf(params)),
    });
    const answer: Json = await response.json();
    if (!answer.ok) throw new PetrelError(`${verb} /api/test/${path}`, response.status, answer);
    return answer.result;
  };

/** A person in a world. Every action goes through the application API, with its checks and errors. */
export class Person {
  readonly name: string;
  readonly id: number;
  readonly username: string;
  readonly first_name: string;
  /** The person's token, for other calls of the application API. */
  readonly token: string;
  readonly #act: (action: string, params: object) => Promise<Json>;

  constructor(data: WorldData['people'][number], act: (action: string, params: object) => Promise<Json>) {
    this.name = data.name;
    this.id = data.id;
    this.username = data.username;
    this.first_name = data.first_name;
    this.token = data.token;
    this.#act = act;
  }

  /** Presses Start in the chat with the bot. */
  start(payload?: string): Promise<Json> {
    return this.#act('start', { payload });
  }

  /** Sends a message and returns it. */
  send(
    text: string,
    options: { readonly chat?: Chat; readonly reply_to_message_id?: number } = {},
  ): Promise<Json> {
    return this.#act('send', { text, ...options });
  }

  /**
   * Sends a location or a contact: `{ location: { latitude, longitude } }` or `{ contact: { phone_number, first_name }
   * }`.
   */
  sendObject(object: Json, options: { readonly chat?: Chat } = {}): Promise<Json> {
    return this.#act('send', { ...object, ...options });
  }

  /** Sends a file, for example `sendFile('photo', 'cat.png', bytes)`. The kinds are those of the application API. */
  sendFile(
    kind: 'photo' | 'video' | 'animation' | 'audio' | 'voice' | 'document' | 'video_note',
    filename: string,
    content: Uint8Array<ArrayBuffer> | string,
    options: { readonly chat?: Chat; readonly caption?: string } = {},
  ): Promise<Json> {
    return this.#act('send', { [kind]: new Upload(filename, content), ...options });
  }

  /** Replaces the text of a message that the person sent. */
  edit(message_id: number, text: string, options: { readonly chat?: Chat } = {}): Promise<Json> {
    return this.#act('edit', { message_id, text, ...options });
  }

  delete(message_id: number, options: { readonly chat?: Chat } = {}): Promise<Json> {
    return this.#act('delete', { message_id, ...options });
  }

  /** Votes in a poll. An empty list retracts the vote. */
  vote(message_id: number, option_ids: readonly number[], options: { readonly chat?: Chat } = {}) {
    return this.#act('vote', { message_id, option_ids, ...options });
  }

  /** Asks the bot to stop writing a draft. */
  stopDraft(draft_id: number): Promise<Json> {
    return this.#act('stop_draft', { draft_id });
  }

  /** Sends an inline query and waits for the bot's answer, up to 7 s. The world must be made with `inline`. */
  inlineQuery(query: string, options: { readonly chat?: Chat; readonly offset?: string } = {}) {
    return this.#act('inline_query', { query, ...options });
  }

  /** Sends a result of an inline query as a message. */
  choose(inline_query_id: string, result_id: string, options: { readonly chat?: Chat } = {}) {
    return this.#act('choose', { inline_query_id, result_id, ...options });
  }

  /** Presses the inline button that has this data. */
  press(message_id: number, data: string, options: { readonly chat?: Chat } = {}): Promise<Json> {
    return this.#act('press', { message_id, data, ...options });
  }

  /** Adds a reaction to a message in the channel. */
  react(message_id: number, emoji: string): Promise<Json> {
    return this.#act('react', { message_id, emoji });
  }

  join(chat: Chat): Promise<Json> {
    return this.#act('join', { chat });
  }

  leave(chat: Chat): Promise<Json> {
    return this.#act('leave', { chat });
  }

  /** Blocks the bot. */
  block(): Promise<Json> {
    return this.#act('block', {});
  }

  unblock(): Promise<Json> {
    return this.#act('unblock', {});
  }

  /** Performs an action by its name. */
  act(action: string, params: object = {}): Promise<Json> {
    return this.#act(action, params);
  }
}

/** A bot with its people and chats. Worlds are separate from each other. */
export class World {
  readonly id: number;
  readonly bot: WorldData['bot'];
  readonly people: readonly Person[];
  readonly chats: WorldData['chats'];
  /** The root URL for bot libraries, for example grammY's `apiRoot`. */
  readonly apiRoot: string;
  readonly #call: Call;

  constructor(data: WorldData, url: string, call: Call) {
    this.id = data.world;
    this.bot = data.bot;
    this.chats = data.chats;
    this.apiRoot = url;
    this.#call = call;
    this.people = data.people.map(
      (person) =>
        new Person(person, (action, params) =>
          call('POST', `worlds/${data.world}/people/${person.name}/${action}`, params),
        ),
    );
  }

  /** Returns the person with this name, by default the first person. */
  person(name?: string): Person {
    const found = name === undefined ? this.people[0] : this.people.find((person) => person.name === name);
    if (found === undefined) throw new Error(`this world has no person ${name}`);
    return found;
  }

  /** Returns the recorded entries, oldest first. */
  async recording(filter: EntryFilter = {}): Promise<RecordedEntry[]> {
    return this.#recorded({ ...filter });
  }

  /** Returns the bot's calls, or only those of one method. */
  calls(method?: string): Promise<RecordedEntry[]> {
    return this.#recorded({ kind: 'call', ...(method !== undefined && { name: method }) });
  }

  /**
   * Waits until the bot has made `count` calls of a method, and returns them. Throws if there are fewer after
   * `timeoutMs`, by default 5 s and at most 30 s. The waiting time is measured by the machine's clock.
   */
  async waitForCalls(
    method: string,
    { count = 1, timeoutMs = 5_000, after = 0 } = {},
  ): Promise<[RecordedEntry, ...RecordedEntry[]]> {
    const calls = await this.#recorded({ kind: 'call', name: method, count, wait_ms: timeoutMs, after });
    if (calls.length < count)
      throw new Error(
        `the bot made ${calls.length} calls of ${method} within ${timeoutMs} ms instead of ${count}`,
      );
    return calls as [RecordedEntry, ...RecordedEntry[]];
  }

  /** Returns the deliveries to the webhook, or only those with one kind of update. */
  deliveries(kind?: string): Promise<RecordedEntry[]> {
    return this.#recorded({ kind: 'delivery', ...(kind !== undefined && { name: kind }) });
  }

  /** Delays the next calls of a method (`on`) or the next deliveries (`delivery`), or makes them fail. */
  async fault(on: string, fault: Fault): Promise<void> {
    await this.#call('POST', `worlds/${this.id}/faults`, { on, ...fault });
  }

  /** Removes the faults that have not happened yet. */
  async clearFaults(): Promise<void> {
    await this.#call('DELETE', `worlds/${this.id}/faults`);
  }

  /** Returns a recording of this world for `replay`. It contains no tokens and can be saved as JSON. */
  async save(): Promise<SavedRecording> {
    return { world: this.#names(), entries: await this.#all() };
  }

  #names(): WorldNames {
    const people = this.people.map(({ name, id, username }) => ({ name, id, username }));
    const { id, username } = this.bot;
    return { bot: { id, username }, people, chats: this.chats };
  }

  /**
   * Repeats the actions of people in a recording, in order. The world needs people and chats with the same names, and
   * its bot must run. Before each action, waits until the bot has made as many calls as it had in the recording, for at
   * most `waitMs`. Replaces the ids of recorded messages and queries with ids of this world: a press on the bot's third
   * message to ann stays a press on the bot's third message to ann. Returns the calls of both bots with names instead
   * of ids. Throws if an action needs a message that the bot has not sent, or a file that is not in `files` (by file
   * name).
   */
  async replay(
    recording: SavedRecording,
    { waitMs = 2_000, files = {} }: { readonly waitMs?: number; readonly files?: Files } = {},
  ): Promise<{ readonly expected: NamedCall[]; readonly actual: NamedCall[] }> {
    const before = new Names(recording);
    const calls = recording.entries.filter(isBehaviour).map(({ n }) => n);
    for (const entry of recording.entries) {
      if (entry.kind !== 'action') continue;
      const { n, began_after = n } = entry;
      const made = calls.filter((call) => call <= began_after).length;
      const params = this.#translated(entry, before, await this.#afterCalls(made, waitMs));
      await this.person(entry.person)
        .act(entry.name, withFiles(params, files))
        .catch((error) => {
          // Ignores the error if the recorded action was refused too.
          if (entry.status === 200) throw error;
        });
    }
    const entries = await this.#afterCalls(calls.length, waitMs);
    const after = new Names({ world: this.#names(), entries });
    return { expected: before.calls(recording.entries), actual: after.calls(entries) };
  }

  /** Returns the recording once it has this many calls, or after `waitMs`. */
  async #afterCalls(count: number, waitMs: number): Promise<RecordedEntry[]> {
    for (const end = performance.now() + waitMs; ; ) {
      const entries = await this.#all();
      const restMs = Math.floor(end - performance.now());
      if (entries.filter(isBehaviour).length >= count || restMs <= 0) return entries;
      await this.#recorded({ kind: 'call', after: entries.at(-1)?.n ?? 0, wait_ms: restMs });
    }
  }

  /**
   * Returns a recorded action's parameters with this world's ids. `entries` are what this world has recorded so far.
   */
  #translated(entry: RecordedEntry, before: Names, entries: readonly RecordedEntry[]): Record<string, Json> {
    const now = new Names({ world: this.#names(), entries });
    const chat = before.chatOf(entry);
    const found = (place: string, id: Json) => {
      const label = before.label(place, id);
      const translated = label === undefined ? id : now.id(place, label);
      if (translated === undefined)
        throw new Error(`${entry.person} cannot repeat "${entry.name}": "${label}" is missing in ${place}`);
      return translated;
    };
    const params = { ...entry.params };
    for (const field of ['message_id', 'reply_to_message_id'])
      if (params[field] !== undefined) params[field] = found(chat, params[field]);
    if (params.inline_query_id !== undefined)
      params.inline_query_id = found('inline_query_id', params.inline_query_id);
    if (typeof params.chat === 'number' && /^(group|channel)$/.test(chat)) params.chat = chat;
    return params;
  }

  /** Removes the world. */
  async remove(): Promise<void> {
    await this.#call('DELETE', `worlds/${this.id}`);
  }

  async #all(): Promise<RecordedEntry[]> {
    const entries: RecordedEntry[] = [];
    for (;;) {
      const page = await this.#recorded({ after: entries.at(-1)?.n ?? 0 });
      if (page.length === 0) return entries;
      entries.push(...page);
    }
  }

  async #recorded(query: Record<string, string | number>): Promise<RecordedEntry[]> {
    const text = new URLSearchParams(
      Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
    );
    return (await this.#call('GET', `worlds/${this.id}/recording?${text}`)).items;
  }
}

/** A running test server. */
export class TestServer {
  readonly url: string;
  readonly #call: Call;
  readonly #child: ChildProcess | undefined;

  /** `url` has no trailing slash. */
  constructor(url: string, child?: ChildProcess) {
    this.url = url;
    this.#call = callsTo(url);
    this.#child = child;
  }

  /** Makes a world. */
  async world(form: WorldForm = {}): Promise<World> {
    return new World(await this.#call('POST', 'worlds', form), this.url, this.#call);
  }

  /**
   * Moves the server's clock forward by `ms`, at most 366 days at a time. Resolves when each delivery that became due
   * was attempted. A test that moves the clock cannot share the server with other tests that run at the same time.
   */
  async advance(ms: number): Promise<void> {
    const { settled } = await this.#call('POST', 'clock', { advance_ms: ms });
    if (!settled) throw new Error('deliveries to webhooks were still in progress 15 s after the clock moved');
  }

  /** Stops the server if `startTestServer` started it. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    // Keeps this process alive until the server ends.
    child.ref();
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/**
 * Starts a test server as a child process, and waits until it is ready. The server ends when this process ends. If the
 * server does not start, rejects with the end of the server's log.
 */
export async function startTestServer(
  options: {
    readonly port?: number;
    /** The server's settings, for example `RATE_PER_BOT`. */
    readonly settings?: Readonly<Record<string, string>>;
  } = {},
): Promise<TestServer> {
  for (let tries = 1; ; tries++)
    try {
      return await startOn(options.port ?? (await freePort()), options.settings);
    } catch (error) {
      // Another process may have taken the port after it was found free.
      const isTaken = (error as Error).message.includes('the port is in use');
      if (options.port !== undefined || !isTaken || tries === 3) throw error;
    }
}

async function startOn(port: number, settings: Readonly<Record<string, string>> = {}): Promise<TestServer> {
  // Passes only these variables to the server. Test runners set other variables that have the names of settings, for
  // example BASE_URL.
  const { PATH, HOME, TMPDIR } = process.env;
  const main = fileURLToPath(new URL('../main.js', import.meta.url));
  const child = spawn(process.execPath, [main, 'test-server'], {
    env: { PATH, HOME, TMPDIR, ...settings, PORT: String(port) },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let log = '';
  const keep = (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-4_000);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  const first = await Promise.race([once(child, 'message'), once(child, 'exit')]);
  if ((first[0] as { type?: unknown } | null)?.type !== 'ready')
    throw new Error(`the test server did not start:\n${log}`);
  // Lets a test runner end while the server is running. The server then ends too, because its channel to the runner
  // closes.
  child.unref();
  child.channel?.unref();
  return new TestServer(`http://127.0.0.1:${port}`, child);
}
