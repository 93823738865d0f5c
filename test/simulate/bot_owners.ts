/**
 * Simulates the owners of bots, who replace tokens, set and delete webhooks, and poll. Each owner makes one call at a
 * time. Checks that every process refuses revoked tokens and accepts the valid token, and that requests go to the new
 * receiver after a webhook change.
 */
import { ApiError } from '../../src/errors.js';
import { firstToken, urlOf } from './control_tables.js';
import { bots, users } from './people.js';
import type { SimulatedProcess } from './process.js';
import type { Receivers } from './receivers.js';
import type { Scheduler } from './scheduler.js';

interface BotState {
  /**
   * The valid token. Undefined while a call is replacing the token. Stays undefined if the outcome of the call is
   * unknown.
   */
  token: string | undefined;
  readonly revoked: string[];
  replacing: boolean;
  /**
   * Whether the bot gets updates by webhook or by polls. Undefined while a call changes the webhook, and afterwards if
   * the outcome of the call is unknown.
   */
  delivery: 'webhook' | 'polls' | undefined;
  calling: boolean;
  offset: number;
  urls: number;
}

/** Returns the answer of a call. Returns undefined if the outcome is unknown because the process failed or died. */
type Ask = <T>(front: SimulatedProcess, work: () => Promise<T>) => Promise<T | undefined>;

export class BotOwners {
  readonly #scheduler: Scheduler;
  readonly #receivers: Receivers;
  readonly #ask: Ask;
  readonly #onViolation: (what: string) => void;
  readonly #states = new Map<number, BotState>();

  constructor(scheduler: Scheduler, receivers: Receivers, ask: Ask, onViolation: (what: string) => void) {
    this.#scheduler = scheduler;
    this.#receivers = receivers;
    this.#ask = ask;
    this.#onViolation = onViolation;
    for (const bot of bots)
      this.#states.set(bot, {
        ...{ token: firstToken(bot), revoked: [], replacing: false, delivery: 'webhook' },
        ...{ calling: false, offset: 0, urls: 0 },
      });
  }

  #of(bot: number): BotState {
    return this.#states.get(bot) as BotState;
  }

  /** The bots that have no webhook. At the end of a run, a client sets a webhook for each of them. */
  get polling(): number[] {
    return bots.filter((bot) => this.#of(bot).delivery !== 'webhook');
  }

  async replaceToken(front: SimulatedProcess, bot: number): Promise<void> {
    const state = this.#of(bot);
    if (state.replacing) return;
    const former = state.token;
    state.replacing = true;
    state.token = undefined;
    const made = await this.#ask(front, () => front.store.bots.regenerateToken(users[0], bot));
    state.replacing = false;
    if (former !== undefined && made !== undefined) state.revoked.push(former);
    state.token = made?.token;
  }

  async checkToken(front: SimulatedProcess, bot: number): Promise<void> {
    const state = this.#of(bot);
    const { random } = this.#scheduler;
    const given = random.chance(0.5) ? state.token : state.revoked.at(-1);
    if (given === undefined) return;
    const isRevoked = state.revoked.includes(given);
    // Also checks cached answers, because a front that has cached the token answers without asking Redis.
    const found = await this.#ask(front, async () => ({ bot: await front.store.auth.bot(given) }));
    if (found === undefined) return;
    const place = `${front.name}, bot ${bot}`;
    if (isRevoked && found.bot !== null) this.#onViolation(`${place}: a revoked token was accepted`);
    if (!isRevoked && found.bot === null && state.token === given)
      this.#onViolation(`${place}: the valid token was refused`);
  }

  /** Sets a webhook with another URL. */
  async setWebhook(front: SimulatedProcess, bot: number): Promise<void> {
    const url = urlOf(bot, ++this.#of(bot).urls);
    const settings = {
      ...{ url, secretToken: null, certificate: null, address: null },
      maxConnections: this.#scheduler.random.int(1, 11),
    };
    await this.#change(front, bot, 'webhook', url, () =>
      front.store.webhooks.set(bot, settings, { drop: false, mask: null }),
    );
  }

  async deleteWebhook(front: SimulatedProcess, bot: number): Promise<void> {
    await this.#change(front, bot, 'polls', null, () => front.store.webhooks.remove(bot, false));
  }

  async #change(
    front: SimulatedProcess,
    bot: number,
    delivery: 'webhook' | 'polls',
    url: string | null,
    call: () => Promise<boolean>,
  ): Promise<void> {
    const state = this.#of(bot);
    if (state.calling) return;
    state.calling = true;
    state.delivery = undefined;
    this.#receivers.expect(bot, undefined);
    const done = await this.#ask(front, call);
    state.calling = false;
    if (done === undefined) return;
    state.delivery = delivery;
    this.#receivers.expect(bot, url);
  }

  /** Polls, and confirms the updates of the previous poll. */
  async poll(front: SimulatedProcess, bot: number): Promise<void> {
    const state = this.#of(bot);
    if (state.calling) return;
    state.calling = true;
    const { random } = this.#scheduler;
    const request = { offset: state.offset, limit: random.int(1, 6), timeout: random.int(0, 3), mask: null };
    const poll = () => front.store.polls.poll(bot, { ...request, onGone: () => undefined });
    const entries = await this.#ask(front, () =>
      poll().catch((error) => {
        // If the outcome of the last change is unknown, the bot may already have a webhook.
        if (error instanceof ApiError && /^poll_/.test(error.kind)) return [];
        throw error;
      }),
    );
    state.calling = false;
    if (entries === undefined || entries.length === 0) return;
    this.#receivers.polled(bot, entries);
    state.offset = (entries.at(-1)?.updateId ?? 0) + 1;
  }
}
