/**
 * Makes worlds. A world is one bot with its token, and people who each have a direct chat with the bot. On request, it
 * also has a group and a channel. Worlds share no accounts and no chats.
 */

import { fail } from '../errors.js';
import { rightNames } from '../rules/rights.js';
import type { Dispatch } from '../server/dispatch.js';
import { shared } from '../shared.js';
import type { Store } from '../store/store.js';
import { innerResult } from './inner_call.js';
import { testModeLimits as limits } from './limits.js';

export interface Person {
  readonly name: string;
  readonly id: number;
  readonly username: string;
  readonly first_name: string;
  readonly token: string;
}

export interface World {
  readonly id: number;
  readonly bot: { readonly id: number; readonly username: string; readonly token: string };
  readonly people: readonly Person[];
  /** The ids of the group and the channel. */
  readonly chats: { readonly group?: number; readonly channel?: number };
}

export interface WorldForm {
  /** The names of the people. The first of them owns the bot and the chats. */
  readonly people: readonly string[];
  readonly group: boolean;
  readonly channel: boolean;
  /** Whether the bot's inline mode is on. */
  readonly inline: boolean;
}

/** Worlds of one form that are made in advance, so that a test need not wait for Postgres commits. */
interface Spares {
  readonly form: WorldForm;
  readonly max: number;
  readonly ready: World[];
}

const plain: WorldForm = { people: ['ann'], group: false, channel: false, inline: false };
const createSpares = (): Spares[] => [
  { form: plain, max: limits.worlds_spare, ready: [] },
  { form: { ...plain, group: true, channel: true }, max: limits.worlds_with_chats_spare, ready: [] },
];

const isEqual = (a: WorldForm, b: WorldForm) =>
  a.people.join() === b.people.join() &&
  a.group === b.group &&
  a.channel === b.channel &&
  a.inline === b.inline;

export interface WorldsOptions {
  readonly store: Store;
  readonly dispatch: Dispatch;
  onError(error: unknown): void;
}

export class Worlds {
  readonly #options: WorldsOptions;
  readonly #worlds = new Map<number, World>();
  readonly #byBot = new Map<number, World>();
  readonly #spares = createSpares();
  #stopped = false;
  #last = 0;
  /** Makes spare worlds until there are enough. */
  readonly refill = shared(async () => {
    const makers = Array.from({ length: limits.worlds_made_at_once }, () => this.#makeSpares());
    await Promise.all(makers).catch(this.#options.onError);
  });

  constructor(options: WorldsOptions) {
    this.#options = options;
  }

  /** Makes a world or takes a spare one. Throws `too_many_requests` if there are `limits.worlds_max` worlds. */
  async create(form: WorldForm): Promise<World> {
    if (this.#worlds.size >= limits.worlds_max) fail('too_many_requests', { retry_after: 1 });
    const spares = this.#spares.find((each) => isEqual(each.form, form));
    const world = spares?.ready.shift() ?? (await this.#make(form));
    this.#worlds.set(world.id, world);
    this.#byBot.set(world.bot.id, world);
    if (spares !== undefined) void this.refill();
    return world;
  }

  /** Stops making spare worlds, and waits for those that are being made. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.refill.running();
  }

  async #makeSpares(): Promise<void> {
    for (const { form, max, ready } of this.#spares)
      while (!this.#stopped && ready.length < max) ready.push(await this.#make(form));
  }

  /** Throws `not_found`. */
  find(id: number): World {
    return this.#worlds.get(id) ?? fail('not_found');
  }

  ofBot(bot: number): World | undefined {
    return this.#byBot.get(bot);
  }

  /** Deletes the bot and revokes the people's tokens. Throws `not_found`. */
  async remove(id: number): Promise<void> {
    const { store } = this.#options;
    const { bot, people } = this.find(id);
    this.#worlds.delete(id);
    this.#byBot.delete(bot.id);
    await store.bots.remove((people[0] as Person).id, bot.id);
    await Promise.all(people.map((person) => store.users.removeTokens(person.id)));
  }

  async #make({ people: names, group, channel, inline }: WorldForm): Promise<World> {
    const { store } = this.#options;
    const id = ++this.#last;
    const people = await Promise.all(names.map((name) => this.#person(id, name)));
    const owner = people[0] as Person;
    const { bot, token } = await store.bots.create(owner.id, `w${id}_test_bot`, `Bot ${id}`);
    await Promise.all(people.map((person) => store.chats.openDirect(bot.id, person.id)));
    if (inline) {
      const path = `/api/me/bots/${bot.id}/inline_mode`;
      await this.#callAs(owner, 'PUT', path, { enabled: true, feedback: true });
    }
    const chats = {
      ...(group && { group: await this.#chat(id, 'group', owner, bot.id) }),
      ...(channel && { channel: await this.#chat(id, 'channel', owner, bot.id) }),
    };
    return { id, bot: { id: bot.id, username: bot.username, token }, people, chats };
  }

  async #person(world: number, name: string): Promise<Person> {
    const username = `${name}_w${world}`;
    const first_name = `${name[0]?.toUpperCase()}${name.slice(1)}`;
    const { user, token } = await this.#options.store.users.create({ username, first_name });
    return { name, id: user.id, username, first_name, token };
  }

  /** Creates a public chat that `owner` owns and in which the bot is an administrator. */
  async #chat(world: number, type: 'group' | 'channel', owner: Person, bot: number): Promise<number> {
    const title = `${type === 'group' ? 'Group' : 'Channel'} ${world}`;
    const made = await this.#callAs(owner, 'POST', '/api/chats', {
      type,
      title,
      username: `w${world}_${type}`,
    });
    const { id } = made as { readonly id: number };
    const rights = Object.fromEntries(rightNames.map((name) => [name, true]));
    await this.#callAs(owner, 'PUT', `/api/chats/${id}/members/${bot}`, { status: 'administrator', rights });
    return id;
  }

  #callAs({ token }: Person, verb: string, path: string, params: Record<string, unknown>): Promise<unknown> {
    return innerResult(this.#options.dispatch, { verb, path, token, params });
  }
}
