/**
 * Simulates receivers of webhooks, and clients that poll. A receiver answers at any later time, or refuses the update.
 * Its answer may be lost. The checks demand that updates arrive in order and that none is missing.
 */
import { deliveryLimits } from '../../src/delivery/limits.js';
import { isDirect } from '../../src/store/core/keys.js';
import type { UpdateEntry } from '../../src/store/updates/queues.js';
import type { Network, Request } from './process.js';
import type { Choice, Scheduler } from './scheduler.js';

interface Body {
  readonly update_id: number;
  readonly message?: Message;
  readonly edited_message?: Message;
}

interface Message {
  readonly message_id: number;
  readonly text?: string;
  readonly chat: { readonly id: number };
}

/** An update whose content a receiver has checked. */
interface Seen {
  readonly text: string;
  readonly chat: string;
  accepted: boolean;
}

export interface Leases {
  /** Whether two workers may have a lease at the same time, because the clock of Redis jumped or Redis lost leases. */
  mayOverlap(): boolean;
  /** Whether Redis lost the lease of a worker, and the worker may not know about this loss yet. */
  areLost(): boolean;
}

/** Whether a request may be aborted too late, because its sender is dead or was frozen. */
const isExcused = ({ from, tainted }: Request) => !from.alive || from.frozen || tainted;

/** Names a message by its text. The service message about a pin has no text. */
const nameOf = (text: string | undefined, chat: string, id: number) =>
  text ?? `service message ${chat} ${id}`;

function contentOf({ bot, body }: Request) {
  const { update_id: id, message: sent, edited_message: edited } = JSON.parse(String(body)) as Body;
  const message = sent ?? edited;
  return { id, message, chat: `${bot} ${message?.chat.id}` };
}

export class Receivers {
  /** The texts of accepted messages, keyed by bot. */
  readonly accepted = new Map<number, Set<string>>();
  /** The webhook URL of each bot, and when it was set. The URL is null while the bot polls. */
  readonly #expected = new Map<number, { readonly url: string | null; readonly sinceMs: number }>();
  /** The share of requests that are answered late, by up to 12 s. */
  readonly #slowAnswers: number;
  readonly #seen = new Map<string, Seen>();
  /** The updates of each chat in order of arrival. */
  readonly #chats = new Map<string, Seen[]>();
  readonly #chatOf = new WeakMap<Request, string>();
  /** The requests that were in flight when Redis last ran a poll with updates, keyed by bot. */
  readonly #inFlightAtPoll = new Map<number, readonly Request[]>();
  /** The ids of updates by bot and text. Each text is sent only once. */
  readonly #idOf = new Map<string, number>();
  readonly #network: Network;
  readonly #leases: Leases;
  readonly #scheduler: Scheduler;
  readonly #onViolation: (what: string) => void;
  /** Whether receivers answer every request with 200. */
  healthy = false;

  constructor(
    network: Network,
    scheduler: Scheduler,
    slowAnswers: number,
    leases: Leases,
    onViolation: (what: string) => void,
  ) {
    this.#slowAnswers = slowAnswers;
    this.#leases = leases;
    this.#network = network;
    this.#scheduler = scheduler;
    this.#onViolation = onViolation;
    scheduler.addSource(() => this.#choices());
  }

  /**
   * Call this when Redis has lost updates. After the call, receivers no longer expect the updates that they refused.
   */
  forgive(): void {
    this.#chats.clear();
    this.#idOf.clear();
  }

  #choices(): Choice[] {
    return this.#network.requests.flatMap((request) => {
      const { from, bot, arrived, answerAtMs } = request;
      if (!arrived)
        return [
          { what: () => `receiver of bot ${bot}: request of ${from.name}`, run: () => this.#arrive(request) },
        ];
      const waits = !this.healthy && this.#scheduler.nowMs < answerAtMs;
      return from.frozen || waits
        ? []
        : [{ what: () => `receiver of bot ${bot}: answers ${from.name}`, run: () => this.#answer(request) }];
    });
  }

  #arrive(request: Request): void {
    const { random, nowMs } = this.#scheduler;
    request.arrived = true;
    if (random.chance(this.#slowAnswers)) request.answerAtMs = nowMs + random.int(0, 12_000);
    const { id, message, chat } = contentOf(request);
    const text = nameOf(message?.text, chat, message?.message_id ?? 0);
    this.#checkOverlap(request, chat);
    this.#checkUrl(request);
    const { known, seen } = this.#note(request.bot, id, text, chat);
    if (!known && !this.#leases.areLost()) this.#checkOrder(request.bot, id, seen);
  }

  /**
   * Records the current webhook URL after the call that changed it has returned. `url` is undefined when a call begins
   * to change it, because the current URL is then unknown.
   */
  expect(bot: number, url: string | null | undefined): void {
    if (url === undefined) this.#expected.delete(bot);
    else this.#expected.set(bot, { url, sinceMs: this.#scheduler.nowMs });
  }

  /** Returns a bot's requests in flight. Until they have ended, a poll must not return updates of the same chats. */
  #inFlight(bot: number): Request[] {
    if (this.#leases.mayOverlap()) return [];
    return this.#network.requests.filter((each) => each.bot === bot && !isExcused(each));
  }

  /** Call this when Redis has run a poll that returns updates. */
  pollRan(bot: number): void {
    this.#inFlightAtPoll.set(bot, this.#inFlight(bot));
  }

  /**
   * Records that a client got the answer of a poll and thereby accepted its updates. No request to a webhook may have
   * been in flight for the same chats when Redis ran the poll. If the owner knows that the bot has no webhook, no such
   * request may be in flight now either.
   */
  polled(bot: number, entries: readonly UpdateEntry[]): void {
    const isPolling = this.#expected.get(bot)?.url === null;
    const inFlight = [...(this.#inFlightAtPoll.get(bot) ?? []), ...(isPolling ? this.#inFlight(bot) : [])];
    for (const { shownId: id, message } of entries) {
      const chat = `${bot} ${isDirect(message.chat) ? message.chat.user : message.chat.id}`;
      const text = nameOf(message.record.content.text, chat, message.id);
      const busy = inFlight.find((each) => contentOf(each).chat === chat);
      if (busy) this.#onViolation(`bot ${bot} polled ${text} while ${busy.from.name} delivers to ${chat}`);
      const { known, seen } = this.#note(bot, id, text, chat);
      if (!known && !this.#leases.areLost()) this.#checkOrder(bot, id, seen);
      this.#accept(bot, seen);
    }
  }

  #note(bot: number, id: number, text: string, chat: string) {
    const name = `${bot} ${id}`;
    const known = this.#seen.get(name);
    if (known && known.text !== text)
      this.#onViolation(`update ${name} has the text ${text}, and had the text ${known.text}`);
    const seen = known ?? { text, chat, accepted: false };
    this.#seen.set(name, seen);
    const idKnown = this.#idOf.get(`${bot} ${text}`) ?? id;
    if (idKnown !== id) this.#onViolation(`update ${name} (${text}) repeats update ${idKnown}`);
    return { known: known !== undefined, seen };
  }

  /**
   * Checks the order of updates when an update first arrives. Not called while workers may still have updates that
   * Redis lost in a failover.
   */
  #checkOrder(bot: number, id: number, seen: Seen): void {
    const before = this.#chats.get(seen.chat) ?? [];
    this.#chats.set(seen.chat, before);
    const missed = before.find(({ accepted }) => !accepted);
    if (missed)
      this.#onViolation(`update ${bot} ${id} (${seen.text}) arrived before ${missed.text} was accepted`);
    before.push(seen);
    this.#idOf.set(`${bot} ${seen.text}`, id);
  }

  #accept(bot: number, seen: Seen): void {
    seen.accepted = true;
    const accepted = this.accepted.get(bot) ?? new Set();
    this.accepted.set(bot, accepted.add(seen.text));
  }

  /**
   * Checks that a request goes to the current webhook URL. Requests with an older URL are allowed until one lease after
   * the change. A worker reads the settings at each step, and stops sending half a lease after its last step.
   */
  #checkUrl({ bot, path, sentMs, from, tainted }: Request): void {
    const expected = this.#expected.get(bot);
    if (expected === undefined || tainted || this.#leases.mayOverlap()) return;
    if (sentMs < expected.sinceMs + deliveryLimits.webhook_lease_ms || expected.url?.endsWith(path)) return;
    this.#onViolation(`${from.name} sent to ${path}, and the webhook of bot ${bot} is ${expected.url}`);
  }

  /** Checks that two workers never deliver updates of one chat at the same time, unless leases may overlap. */
  #checkOverlap(request: Request, chat: string): void {
    this.#chatOf.set(request, chat);
    const other = this.#network.requests.find(
      (each) => each !== request && each.from !== request.from && this.#chatOf.get(each) === chat,
    );
    if (other && !isExcused(other) && !request.tainted && !this.#leases.mayOverlap())
      this.#onViolation(`${request.from.name} and ${other.from.name} deliver to ${chat} at once`);
  }

  #answer(request: Request): void {
    const { random } = this.#scheduler;
    const { id } = contentOf(request);
    const seen = this.#seen.get(`${request.bot} ${id}`) as Seen;
    if (!this.healthy && random.chance(0.15)) {
      // A receiver that refuses one update is down, so it refuses further updates for some time.
      request.answer(503);
      return;
    }
    this.#accept(request.bot, seen);
    request.answer(!this.healthy && random.chance(0.1) ? 'lost' : 200);
  }
}
