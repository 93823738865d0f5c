/**
 * Provides what one row of the test table of the interface needs: new bots and chats, calls that alternate between two
 * fronts, and a dump of everything that is visible.
 */
import { type Agent, request } from 'undici';
import type { ChatRef } from '../../src/store/core/keys.js';
import { directChat, sharedChat } from '../../src/store/core/keys.js';
import { type EventSource, eventually, openEvents } from '../clients/event_source.js';
import { holdEndpoint, holdMethod } from '../support/results.js';
import type { Answer, Service } from '../support/service.js';
import { answered, patiently } from '../support/service_calls.js';
import type { Eviction } from './eviction.js';
import type { Hook, Hooks } from './hooks.js';

export interface Person {
  readonly id: number;
  readonly username: string;
  readonly first_name: string;
  readonly external_id: string;
  readonly language_code?: string;
  readonly token: string;
}

export interface Bot {
  readonly id: number;
  readonly username: string;
  readonly name: string;
  readonly token: string;
}

/** A bot's direct chat with Ann. `chat` is the id that the bot uses for this chat. */
export interface Direct {
  readonly bot: Bot;
  readonly chat: number;
}

// biome-ignore lint/suspicious/noExplicitAny: test rows read results of every shape
type Result = any;
type Params = Readonly<Record<string, unknown>>;
type Rights = Readonly<Record<string, boolean>>;
export interface Post {
  readonly id: number;
  readonly external_id: string;
  readonly message_id: number;
  readonly date: number;
}

/** The people, channel and bot that a test row uses. When the row ends, another row may use them. */
export interface People {
  /** The person who owns all bots, groups and channels. */
  readonly owner: Person;
  readonly ann: Person;
  readonly ben: Person;
  readonly events: EventSource;
  /** A public channel of the owner. The bot `press` posts in it. */
  readonly channel: number;
  readonly press: Bot;
}

export interface World {
  readonly service: Service;
  readonly eviction: Eviction;
  readonly hooks: Hooks;
  readonly agent: Agent;
  count(): number;
}

export interface Case extends People {
  bot(): Promise<Bot>;
  person(language_code?: string): Promise<Person>;
  /** Creates a bot that Ann has started and that has no pending updates. */
  direct(): Promise<Direct>;
  /** Creates a group of the owner. The bots become members, or administrators if rights are given. */
  group(bots: readonly Bot[], rights?: Rights): Promise<number>;
  /**
   * Creates a public channel of the owner. The bots become administrators, by default with the rights to post and edit.
   */
  newChannel(bots: readonly Bot[], rights?: Rights): Promise<number>;
  post(): Promise<Post>;
  call(bot: { readonly token: string }, method: string, params?: Params): Promise<Answer>;
  result(bot: { readonly token: string }, method: string, params?: Params): Promise<Result>;
  get(bot: { readonly token: string }, method: string, query?: Record<string, string>): Promise<Answer>;
  send(bot: Bot, chat: number, text: string, more?: Params): Promise<number>;
  /** Sends a text message from a person and returns its id. In a direct chat, `chat` is the bot's id. */
  say(person: Person, chat: number, text: string): Promise<number>;
  app(person: { readonly token: string }, verb: string, path: string, body?: unknown): Promise<Answer>;
  appResult(person: { readonly token: string }, verb: string, path: string, body?: unknown): Promise<Result>;
  http(verb: string, path: string, headers: Record<string, string>, body?: string | Buffer): Promise<Answer>;
  readonly url: string;
  /** Returns the messages in a chat as the person sees them, newest first. */
  history(person: Person, chat: number): Promise<Result[]>;
  /** Waits until the bot has at least `count` pending updates, and returns them without confirming any. */
  updates(bot: { readonly token: string }, count: number): Promise<Result[]>;
  drop(bot: { readonly token: string }): Promise<void>;
  /** Opens a webhook receiver, which answers 200 by default. */
  hook(answer?: Hook['answer']): Hook;
  push(bot: Bot, hook: Hook, more?: Params): Promise<void>;
  age(chat: ChatRef, messageId: number, seconds: number): Promise<void>;
  /** Returns everything in the row's chats, posts and bots that people or bots can see. */
  state(): Promise<Result>;
  /**
   * Waits until everything that this row has created is in Postgres. Then removes the keys of this data from Redis.
   * Returns the number of removed keys.
   */
  evict(): Promise<number>;
}

export const inDirect = ({ bot, chat }: Direct): ChatRef => directChat(bot.id, chat);
export const inShared = (chat: number): ChatRef => sharedChat(chat);

const json = { 'content-type': 'application/json' };
const writing = { can_post_messages: true, can_edit_messages: true };

function createCalls({ service, agent }: World) {
  let turn = 0;
  async function http(
    verb: string,
    path: string,
    headers: Record<string, string>,
    body?: string | Buffer,
  ): Promise<Answer> {
    const front = service.fronts[turn++ % service.fronts.length] as (typeof service.fronts)[0];
    const sent = body === undefined ? {} : { body };
    const {
      statusCode,
      headers: got,
      body: stream,
    } = await request(front.url + path, {
      method: verb as 'GET',
      ...{ headers, dispatcher: agent, ...sent },
    });
    return { status: statusCode, headers: got, body: JSON.parse(await stream.text()) };
  }
  return {
    http,
    async call(bot: { readonly token: string }, method: string, params: Params = {}) {
      const path = `/bot${bot.token}/${method}`;
      return holdMethod(method, await http('POST', path, json, JSON.stringify(params)));
    },
    async get(bot: { readonly token: string }, method: string, query: Record<string, string> = {}) {
      const path = `/bot${bot.token}/${method}?${new URLSearchParams(query)}`;
      return holdMethod(method, await http('GET', path, {}));
    },
    async app(person: { readonly token: string }, verb: string, path: string, body?: unknown) {
      const authorization = `Bearer ${person.token}`;
      const answer =
        body === undefined
          ? await http(verb, path, { authorization })
          : await http(verb, path, { authorization, ...json }, JSON.stringify(body));
      return holdEndpoint(verb, path, answer);
    },
  };
}

const appResultOf = (world: World) => {
  const { app } = createCalls(world);
  return ((person, verb, path, body) => patiently(() => app(person, verb, path, body))) as Case['appResult'];
};

async function makePerson(world: World, name: string, language_code?: string): Promise<Person> {
  const given = { username: `${name}_${world.count()}`, first_name: name };
  const body = language_code === undefined ? given : { ...given, language_code };
  const operator = { token: world.service.adminToken };
  const { user, token } = await appResultOf(world)(operator, 'POST', '/api/admin/users', body);
  return { ...user, token };
}

async function makeBot(world: World, owner: Person): Promise<Bot> {
  const name = `Bot ${world.count()}`;
  const username = `case_${world.count()}_bot`;
  return { name, ...(await appResultOf(world)(owner, 'POST', '/api/me/bots', { username, name })) };
}

async function makeShared(
  world: World,
  owner: Person,
  type: string,
  bots: readonly Bot[],
  rights?: Rights,
): Promise<number> {
  const result = appResultOf(world);
  const { id } = await result(owner, 'POST', '/api/chats', { type, title: `The ${type}` });
  const member = rights === undefined ? {} : { status: 'administrator', rights };
  for (const bot of bots) await result(owner, 'PUT', `/api/chats/${id}/members/${bot.id}`, member);
  return id;
}

export async function makePeople(world: World): Promise<People> {
  const owner = await makePerson(world, 'olga');
  const ann = await makePerson(world, 'ann');
  const ben = await makePerson(world, 'ben');
  const press = await makeBot(world, owner);
  const channel = await makeShared(world, owner, 'channel', [press], writing);
  const events = await openEvents(world.service.fronts[1]?.url ?? '', ann.token);
  return { owner, ann, ben, press, channel, events };
}

export function createCase(world: World, people: People): Case {
  const { owner, ann, ben } = people;
  const calls = createCalls(world);
  const { http, call, get, app } = calls;
  const bots: Bot[] = [];
  const posts: Post[] = [];
  const chats: Array<{ readonly who: Person; readonly id: number }> = [];
  const names = new Set([owner, ann, ben].flatMap(({ id, username }) => [String(id), username]));

  const result: Case['result'] = (bot, method, params) => patiently(() => call(bot, method, params));
  const appResult: Case['appResult'] = (person, verb, path, body) =>
    patiently(() => app(person, verb, path, body));
  const history: Case['history'] = async (person, chat) =>
    (await appResult(person, 'GET', `/api/chats/${chat}/messages?limit=100`)).items;

  async function bot(): Promise<Bot> {
    const made = await makeBot(world, owner);
    bots.push(made);
    names.add(String(made.id)).add(made.username);
    return made;
  }

  async function shared(type: string, members: readonly Bot[], rights: Rights | undefined): Promise<number> {
    const id = await makeShared(world, owner, type, members, rights);
    chats.push({ who: owner, id });
    names.add(String(id));
    // The bot gets the update about its membership a moment after the call was answered.
    for (const each of members) await updates(each, 1);
    for (const each of members) await drop(each);
    return id;
  }

  const updates: Case['updates'] = (each, count) =>
    eventually(async () => {
      const waiting = await result(each, 'getUpdates', {});
      if (waiting.length < count) throw new Error(`${waiting.length} updates: ${JSON.stringify(waiting)}`);
      return waiting;
    });

  async function drop(each: { readonly token: string }): Promise<void> {
    await result(each, 'deleteWebhook', { drop_pending_updates: true });
  }

  return {
    ...people,
    ...calls,
    ...{ result, appResult, history, http, bot, updates, drop },
    url: world.service.fronts[0].url,
    hook: (answer) => world.hooks.open(answer),
    async push(each, { url, certificate }, more = {}) {
      await result(each, 'setWebhook', { url, certificate, ...more });
    },
    async person(language_code) {
      const made = await makePerson(world, 'rosa', language_code);
      names.add(String(made.id)).add(made.username);
      return made;
    },
    async direct() {
      const made = await bot();
      await appResult(ann, 'POST', `/api/bots/${made.username}/start`, {});
      await drop(made);
      chats.push({ who: ann, id: made.id });
      return { bot: made, chat: ann.id };
    },
    group: (members, rights) => shared('group', members, rights),
    newChannel: (members, rights = writing) => shared('channel', members, rights),
    async post() {
      const made: Post = await result(people.press, 'createPost', {
        chat_id: people.channel,
        text: 'A post',
      });
      posts.push(made);
      for (const id of [made.id, people.channel, people.press.id]) names.add(String(id));
      return made;
    },
    send: async (from, chat_id, text, more = {}) =>
      (await result(from, 'sendMessage', { chat_id, text, ...more })).message_id,
    say: async (person, chat, text) =>
      (await appResult(person, 'POST', `/api/chats/${chat}/messages`, { text })).message_id,
    age: (chat, messageId, seconds) =>
      world.eviction.backdate(chat, messageId, Math.floor(Date.now() / 1000) - seconds),
    async state() {
      const seen = await Promise.all([
        ...chats.flatMap(({ who, id }) => [history(who, id), appResult(who, 'GET', `/api/chats/${id}`)]),
        ...posts.map(({ id }) => appResult(ben, 'GET', `/api/posts/${id}`)),
        ...bots.flatMap((each) => [
          appResult(owner, 'GET', `/api/me/bots/${each.id}`),
          answered(() => get(each, 'getWebhookInfo')),
        ]),
      ]);
      // Leaves out the headers of the answer, because the header Date always changes.
      return seen.map((one) => ('headers' in one ? { status: one.status, body: one.body } : one));
    },
    evict: () => world.eviction.evict(names),
  };
}
