/**
 * Receivers of webhooks. They answer at any later time, refuse, or lose their answer. They check the order of updates and
 * that no update is missing.
 */
import type { Network, Request } from './process.js';
import type { Choice, Scheduler } from './scheduler.js';

interface Body {
  readonly update_id: number;
  readonly message?: Message;
  readonly edited_message?: Message;
}

interface Message {
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
  /** Whether the clock of Redis jumped, or Redis lost leases, so that two workers may have a lease. */
  mayOverlap(): boolean;
  /** Whether a worker may not know yet that Redis lost its lease. */
  areLost(): boolean;
}

export class Receivers {
  /** The texts of accepted messages, by bot. */
  readonly accepted = new Map<number, Set<string>>();
  readonly #seen = new Map<string, Seen>();
  /** The updates of each chat in order of arrival. */
  readonly #chats = new Map<string, Seen[]>();
  readonly #chatOf = new WeakMap<Request, string>();
  /** The ids of updates by bot and text. Each text is sent once. */
  readonly #idOf = new Map<string, number>();
  readonly #network: Network;
  readonly #leases: Leases;
  readonly #scheduler: Scheduler;
  readonly #onViolation: (what: string) => void;
  /** Whether receivers answer everything with 200. */
  healthy = false;

  constructor(network: Network, scheduler: Scheduler, leases: Leases, onViolation: (what: string) => void) {
    this.#leases = leases;
    this.#network = network;
    this.#scheduler = scheduler;
    this.#onViolation = onViolation;
    scheduler.addSource(() => this.#choices());
  }

  /** Redis lost updates, so receivers no longer wait for those that they have refused. */
  forgive(): void {
    this.#chats.clear();
    this.#idOf.clear();
  }

  #choices(): Choice[] {
    return this.#network.requests.flatMap((request) => {
      const { from, bot, arrived } = request;
      const what = `receiver of bot ${bot}`;
      if (!arrived) return [{ what: `${what}: request of ${from.name}`, run: () => this.#arrive(request) }];
      return from.frozen ? [] : [{ what: `${what}: answers ${from.name}`, run: () => this.#answer(request) }];
    });
  }

  #arrive(request: Request): void {
    request.arrived = true;
    const { update_id: id, message: sent, edited_message: edited } = JSON.parse(String(request.body)) as Body;
    const message = sent ?? edited;
    const [text, chat] = [message?.text ?? '', `${request.bot} ${message?.chat.id}`];
    this.#checkOverlap(request, chat);
    const name = `${request.bot} ${id}`;
    const known = this.#seen.get(name);
    if (known && known.text !== text)
      this.#onViolation(`update ${name} has the text ${text}, and had the text ${known.text}`);
    const seen = known ?? { text, chat, accepted: false };
    this.#seen.set(name, seen);
    const before = this.#chats.get(chat) ?? [];
    this.#chats.set(chat, before);
    const idKnown = this.#idOf.get(`${request.bot} ${text}`) ?? id;
    if (idKnown !== id) this.#onViolation(`update ${name} (${text}) repeats update ${idKnown}`);
    // Workers may still have updates that a failover has lost.
    if (known || this.#leases.areLost()) return;
    const missed = before.find(({ accepted }) => !accepted);
    if (missed) this.#onViolation(`update ${name} (${text}) arrived before ${missed.text} was accepted`);
    before.push(seen);
    this.#idOf.set(`${request.bot} ${text}`, id);
  }

  /** Two workers never deliver updates of one chat at once, unless a lease was lost or its clock jumped. */
  #checkOverlap(request: Request, chat: string): void {
    this.#chatOf.set(request, chat);
    const other = this.#network.requests.find(
      (each) => each !== request && each.from !== request.from && this.#chatOf.get(each) === chat,
    );
    const excused = !other?.from.alive || other.from.frozen || other.tainted || request.tainted;
    if (other && !excused && !this.#leases.mayOverlap())
      this.#onViolation(`${request.from.name} and ${other.from.name} deliver to ${chat} at once`);
  }

  #answer(request: Request): void {
    const { random } = this.#scheduler;
    const { update_id: id } = JSON.parse(String(request.body)) as Body;
    const seen = this.#seen.get(`${request.bot} ${id}`) as Seen;
    if (!this.healthy && random.chance(0.15)) {
      // A receiver that refuses is down for some time.
      request.answer(503);
      return;
    }
    seen.accepted = true;
    const accepted = this.accepted.get(request.bot) ?? new Set();
    this.accepted.set(request.bot, accepted.add(seen.text));
    request.answer(!this.healthy && random.chance(0.1) ? 'lost' : 200);
  }
}
