/**
 * Compares what a bot does in two test worlds. First replaces the ids of accounts, chats and messages by names that are
 * the same in both worlds.
 */
import type { Json, RecordedEntry } from './recorded_entry.js';

/** The bot, people and chats of a recorded world. Contains no tokens. */
export interface WorldNames {
  readonly bot: { readonly id: number; readonly username: string };
  readonly people: ReadonlyArray<{ readonly name: string; readonly id: number; readonly username: string }>;
  readonly chats: { readonly group?: number; readonly channel?: number };
}

/** A world's recording. It can be saved as JSON. */
export interface SavedRecording {
  readonly world: WorldNames;
  readonly entries: readonly RecordedEntry[];
}

/** A bot's call with names instead of ids. */
export interface NamedCall {
  readonly name: string;
  readonly params: Json;
  readonly status: number;
}

/** The calls that a comparison ignores, because users of the bot do not see their effects. */
const quiet = /^(getUpdates|streamUpdates|confirmUpdates|getMe|setWebhook|deleteWebhook|getWebhookInfo)$/;

export const isBehaviour = ({ kind, name }: RecordedEntry): boolean => kind === 'call' && !quiet.test(name);

const chatFields = /^(chat_id|from_chat_id|user_id)$/;
const messageFields = /^(message_id|message_ids|reply_to_message_id)$/;
const queryFields = /^(callback_query_id|inline_query_id)$/;

const attached = /attach:\/\/([^"\\]+)/g;

/** Libraries give uploaded parts random names. Renames them `file 1`, `file 2` and so on. */
function withFilesNumbered(params: Json): Json {
  const found = [...(JSON.stringify(params) ?? '').matchAll(attached)].map(([, name = '']) => name);
  const names = [...new Set(found)];
  if (names.length === 0) return params;
  const numbered = (name: string) => (names.includes(name) ? `file ${names.indexOf(name) + 1}` : name);
  const renamed = Object.entries(params).map(([name, value]) => [numbered(name), value]);
  return JSON.parse(JSON.stringify(Object.fromEntries(renamed)), (_, value) =>
    typeof value === 'string'
      ? value.replace(attached, (_match, name) => `attach://${numbered(name)}`)
      : value,
  );
}

/**
 * The names of accounts, chats, messages and queries in a recording. Messages are counted separately for each chat and
 * sender.
 */
export class Names {
  readonly #world: WorldNames;
  readonly #chats = new Map<string, string>();
  readonly #labels = new Map<string, string>();
  readonly #ids = new Map<string, Json>();
  readonly #counts = new Map<string, number>();

  constructor({ world, entries }: SavedRecording) {
    this.#world = world;
    this.#chats.set(String(world.bot.id), 'bot');
    for (const { name, id } of world.people) this.#chats.set(String(id), name);
    for (const [name, id] of Object.entries(world.chats)) this.#chats.set(String(id), name);
    for (const entry of entries) if (entry.status === 200) this.#note(entry);
  }

  /** Returns the name of a message or query, for example `bot 2` for the bot's second message to the chat. */
  label(chat: string, id: Json): string | undefined {
    return this.#labels.get(`${chat}/${id}`);
  }

  /** Returns the id of the message or query that has the name `label`. */
  id(chat: string, label: string): Json {
    return this.#ids.get(`${chat}/${label}`);
  }

  /** Returns the name of the chat in which a person acts. */
  chatOf({ person = '', params }: RecordedEntry): string {
    const { chat = 'bot' } = params;
    return chat === 'bot' ? person : (this.#chats.get(String(chat)) ?? String(chat));
  }

  /** Returns the bot's calls with names instead of ids. */
  calls(entries: readonly RecordedEntry[]): NamedCall[] {
    return entries
      .filter(isBehaviour)
      .map(({ name, params, status }) => ({ name, params: this.#named(withFilesNumbered(params)), status }));
  }

  #note({ kind, name, person = '', params, answer }: RecordedEntry & { readonly person?: string }): void {
    const result = answer?.result;
    if (kind === 'action') {
      const chat = this.chatOf({ person, params } as RecordedEntry);
      if (result?.message_id !== undefined) this.#add(chat, person, result.message_id);
      for (const field of ['callback_query_id', 'inline_query_id'])
        if (result?.[field] !== undefined) this.#add(field, name, result[field]);
      // The bot knows only the part of this id before the hyphen. All people who get the same answer have this part in
      // common.
      const [query] = String(result?.inline_query_id ?? '').split('-');
      if (query) this.#add('inline_query_id', 'query', query);
    }
    if (kind !== 'call') return;
    for (const sent of Array.isArray(result) ? result : [result]) {
      if (sent?.message_id === undefined) continue;
      const id = String(sent.chat?.id ?? params?.chat_id);
      this.#add(this.#chats.get(id) ?? id, 'bot', sent.message_id);
    }
  }

  #add(chat: string, by: string, id: Json): void {
    // A message that the bot sent before and edits now already has a name.
    if (this.#labels.has(`${chat}/${id}`)) return;
    const count = (this.#counts.get(`${chat}/${by}`) ?? 0) + 1;
    this.#counts.set(`${chat}/${by}`, count);
    this.#labels.set(`${chat}/${id}`, `${by} ${count}`);
    this.#ids.set(`${chat}/${by} ${count}`, id);
  }

  #named(value: Json, field = '', chat = ''): Json {
    if (Array.isArray(value)) return value.map((each) => this.#named(each, field, chat));
    if (typeof value === 'object' && value !== null) {
      const place = String(value.from_chat_id ?? value.chat_id ?? '');
      const inner = this.#chats.get(place) ?? (place || chat);
      return Object.fromEntries(
        Object.entries(value).map(([name, member]) => [name, this.#named(member, name, inner)]),
      );
    }
    if (chatFields.test(field)) return this.#chats.get(String(value)) ?? value;
    if (messageFields.test(field)) return this.label(chat, value) ?? value;
    if (queryFields.test(field)) return this.label(field, value) ?? value;
    return typeof value === 'string' ? this.#withoutUsernames(value) : value;
  }

  #withoutUsernames(text: string): string {
    const { bot, people } = this.#world;
    const named = [{ name: 'bot', username: bot.username }, ...people];
    return named.reduce((left, { name, username }) => left.replaceAll(username, name), text);
  }
}
