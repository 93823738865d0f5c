/**
 * Limits rates with token buckets per bot, owner, person, chat and client address (behaviour §14). All nodes share the
 * buckets. A bucket is one Redis string that expires when the bucket is full. While a caller must wait, its node
 * rejects calls without asking Redis, because nothing can shorten the wait. For fast rates, each node admits a tenth of
 * the rate without asking Redis. All n nodes together therefore admit at most 1 + n / 10 times the rate.
 */
import { fail } from '../../errors.js';
import { clusterSlot } from '../../redis/slots.js';
import type { StoreContext } from '../core/context.js';
import type { Bot } from '../core/control.js';
import { type ChatRef, chatText, isDirect } from '../core/keys.js';
import { storeLimits as limits } from '../limits.js';

/** The size of a bucket: it has room for `calls` and refills evenly within `seconds`. */
export interface Rate {
  readonly calls: number;
  readonly seconds: number;
}

/** The rate of each kind of bucket. A rate that is absent or allows 0 calls is unlimited. */
export interface Rates {
  readonly bot?: Rate | undefined;
  readonly person?: Rate | undefined;
  readonly owner?: Rate | undefined;
  readonly chat?: Rate | undefined;
  readonly address?: Rate | undefined;
  readonly reader?: Rate | undefined;
  /** Sign-ups from one client address. `sign_ups` limits all sign-ups together. */
  readonly sign_up?: Rate | undefined;
  readonly sign_ups?: Rate | undefined;
  /** Calls for sign-in through an identity provider, from one client address. */
  readonly sign_in?: Rate | undefined;
}

export type RateKind = keyof Rates | 'poll';

interface Bucket {
  readonly kind: RateKind;
  readonly name: string;
  readonly partition: number;
}

/** The calls that this node reserved in a bucket in advance. */
interface Grant {
  left: number;
  readonly until: number;
  answer: Promise<number> | undefined;
}

/**
 * If a rate is fast, each node admits 1 / `ownShare` of the rate without asking Redis. These calls cost no round trip
 * to Redis.
 */
const ownShare = 10;
/**
 * A rate counts as fast if it allows at least this many calls per second. For slower rates, Redis counts every call, so
 * these rates are exact.
 */
const ownRateMin = 10;
/** The minimum rate of polls. A bot whose own rate is slower can still fetch its updates. */
const pollsMin: Rate = { calls: 100, seconds: 10 };
/** A front reserves 1 / chunkShare of a bucket in Redis at a time. */
const chunkShare = 100;
/** How long a node keeps unused calls that it reserved in Redis, in ms. */
const spareMs = 1_000;

const isFast = ({ calls, seconds }: Rate) => calls / seconds >= ownRateMin;

type IsMember = (chat: ChatRef, bot: number) => Promise<boolean>;

/** Creates the rate limits. If all rates are unlimited, returns undefined, so that no call is counted. */
export function createFairUse(context: StoreContext, given: Rates, isMember: IsMember): FairUse | undefined {
  const limited = Object.entries(given).filter(([, rate]) => rate !== undefined && rate.calls > 0);
  return limited.length === 0 ? undefined : new FairUse(context, Object.fromEntries(limited), isMember);
}

/**
 * Counts calls. On each node, a bucket is in one of four states: the node refuses calls until a known time, admits
 * calls from its own share, admits calls that it reserved in Redis, or asks Redis for each call.
 */
export class FairUse {
  readonly #context: StoreContext;
  readonly #rates: { [K in RateKind]?: Rate };
  readonly #isMember: IsMember;
  readonly #waits = new Map<string, number>();
  readonly #own = new Map<string, number>();
  readonly #grants = new Map<string, Grant>();
  readonly #refused: Record<RateKind, number> = {
    ...{
      bot: 0,
      poll: 0,
      person: 0,
      owner: 0,
      chat: 0,
      address: 0,
      reader: 0,
      sign_up: 0,
      sign_ups: 0,
      sign_in: 0,
    },
  };
  /**
   * Counts a request against the client's address. Returns undefined if addresses have no rate limit. Error:
   * `too_many_requests`.
   */
  readonly request: ((address: string) => Promise<void> | undefined) | undefined;

  constructor(context: StoreContext, rates: { [K in keyof Rates]?: Rate }, isMember: IsMember) {
    const { bot, address } = rates;
    this.#context = context;
    this.#rates = bot ? { ...rates, poll: isFast(bot) ? bot : pollsMin } : rates;
    this.#isMember = isMember;
    this.request = address && ((from) => this.#countAddress('address', from));
  }

  /** The rates in force. An absent rate is unlimited. */
  get rates(): Readonly<{ [K in RateKind]?: Rate }> {
    return this.#rates;
  }

  get refused(): Readonly<Record<RateKind, number>> {
    return this.#refused;
  }

  /**
   * Counts a bot's call against the bot, and against the chat that the call changes. `weight` is the number of messages
   * that the call creates, but at least one. Returns undefined if this node admits the call without asking Redis.
   * Error: `too_many_requests`.
   */
  call(bot: Bot, chat: ChatRef | null, weight: number): Promise<void> | undefined {
    const { bot: ofBot, owner: ofOwner, chat: inChat } = this.#rates;
    const countInChat = () => (inChat && chat ? this.#countInChat(bot, chat, weight) : undefined);
    const countOthers = (): Promise<void> | undefined => {
      const owned = ofOwner && this.#count(this.#bucket('owner', bot.owner, bot.owner), weight);
      return owned === undefined ? countInChat() : owned.then(countInChat);
    };
    // Counts against the bot first, so that rejected calls take nothing from the buckets of the owner and the chat.
    const first = ofBot && this.#count(this.#bucket('bot', bot.id, bot.id), weight);
    return first === undefined ? countOthers() : first.then(countOthers);
  }

  /**
   * Counts a poll. The rate for polls is the bot's rate for calls, or `pollsMin` if the bot's rate is not fast. Error:
   * `too_many_requests`.
   */
  poll(bot: Bot): Promise<void> | undefined {
    return this.#rates.poll && this.#count(this.#bucket('poll', bot.id, bot.id), 1);
  }

  /**
   * Counts a person's call against the person, and against the chat that the call changes. Each person has a separate
   * bucket for each chat, so that people and bots do not use up each other's calls. Error: `too_many_requests`.
   */
  person(user: number, chat: ChatRef | null, weight: number): Promise<void> | undefined {
    const { person, chat: inChat } = this.#rates;
    const countInChat = (): Promise<void> | undefined =>
      inChat && chat
        ? this.#count(this.#bucket('chat', `${chatText(chat)}|${user}`, chat.id), weight)
        : undefined;
    const first = person && this.#count(this.#bucket('person', user, user), 1);
    return first === undefined ? countInChat() : first.then(countInChat);
  }

  /** Counts a request for a post's public page against the client address. Error: `too_many_requests`. */
  reader(address: string): Promise<void> | undefined {
    return this.#rates.reader && this.#countAddress('reader', address);
  }

  /**
   * Counts a sign-up against the client address, and against all sign-ups together. Returns a function to call if the
   * sign-up creates no account. This function undoes only the count of all sign-ups. The count of the address stays,
   * because otherwise anyone could try usernames without a limit. Error: `too_many_requests`.
   */
  async signUp(address: string): Promise<() => Promise<void>> {
    const { sign_up: ofAddress, sign_ups: ofAll } = this.#rates;
    // Counts against the address first, so that rejected sign-ups from one address use up no sign-ups of other
    // addresses.
    if (ofAddress) await this.#countAddress('sign_up', address);
    if (ofAll === undefined) return async () => undefined;
    // Asks Redis for every sign-up. This node must not remember how long to wait, because a failed sign-up may soon be
    // subtracted from the count.
    const all: Bucket = { kind: 'sign_ups', name: 'sign_ups', partition: 0 };
    const wait = await this.#send(all, 1);
    if (wait > 0) this.#refuse(all.kind, wait);
    return async () => {
      await this.#send(all, -1);
    };
  }

  /** Counts a call for sign-in through an identity provider. Error: `too_many_requests`. */
  signIn(address: string): Promise<void> | undefined {
    return this.#rates.sign_in && this.#countAddress('sign_in', address);
  }

  /**
   * Counts `calls` additional calls against the caller of a call that counts as more than one call. Error:
   * `too_many_requests`.
   */
  more({ id, isBot }: { readonly id: number; readonly isBot: boolean }, calls: number) {
    const kind = isBot ? 'bot' : 'person';
    return this.#rates[kind] && this.#count(this.#bucket(kind, id, id), calls);
  }

  #countAddress(
    kind: 'address' | 'reader' | 'sign_up' | 'sign_in',
    address: string,
  ): Promise<void> | undefined {
    if (address === '') return undefined;
    const partition = clusterSlot(address) % this.#context.keys.partitions.count;
    return this.#count({ kind, name: `${kind}:${address}`, partition }, 1);
  }

  /**
   * Counts a bot's call against a chat. A bot that is not in the chat has its own bucket, so that it cannot use up the
   * chat's calls.
   */
  #countInChat(bot: Bot, chat: ChatRef, weight: number): Promise<void> | undefined {
    const name = chatText(chat);
    const bucket = this.#bucket('chat', name, chat.id);
    if (isDirect(chat)) return this.#count(bucket, weight);
    if (this.#takeOwn(bucket, weight, this.#context.time.monotonic())) return undefined;
    const apart = this.#bucket('chat', `${name}|${bot.id}`, chat.id);
    return this.#isMember(chat, bot.id).then((member) => this.#count(member ? bucket : apart, weight));
  }

  #bucket(kind: RateKind, id: number | string, of: number): Bucket {
    return { kind, name: `${kind}:${id}`, partition: this.#context.keys.partitions.of(of) };
  }

  #count(bucket: Bucket, weight: number): Promise<void> | undefined {
    const now = this.#context.time.monotonic();
    const until = this.#waits.get(bucket.name);
    if (until !== undefined) {
      if (until > now) this.#refuse(bucket.kind, until - now);
      this.#waits.delete(bucket.name);
    }
    return this.#take(bucket, weight, now)?.then((wait) => {
      if (wait > 0) this.#refuse(bucket.kind, wait);
    });
  }

  #refuse(kind: RateKind, waitMs: number): never {
    this.#refused[kind]++;
    return fail('too_many_requests', { retry_after: Math.ceil(waitMs / 1_000) });
  }

  /**
   * Returns how many ms a call must wait, or undefined if this node admits the call without asking Redis. Concurrent
   * calls share one request to Redis. If each sent its own request, each would reserve a whole chunk, and together they
   * would empty the bucket.
   */
  #take(bucket: Bucket, weight: number, now: number): Promise<number> | undefined {
    if (this.#takeOwn(bucket, weight, now)) return undefined;
    const grant = this.#grants.get(bucket.name);
    if (grant === undefined || grant.until < now || grant.left < weight)
      return this.#ask(bucket, weight, now);
    grant.left -= weight;
    return grant.answer;
  }

  #takeOwn({ kind, name }: Bucket, weight: number, now: number): boolean {
    const rate = this.#rates[kind] as Rate;
    const { calls, seconds } = rate;
    const most = isFast(rate) ? Math.floor(calls / ownShare) : 0;
    if (most < weight) return false;
    const interval = (seconds * 1_000 * ownShare) / calls;
    const whole = Math.max(this.#own.get(name) ?? 0, now) + interval * weight;
    if (whole - now > most * interval) return false;
    if (this.#own.size >= limits.rate_memory_max) this.#own.clear();
    this.#own.set(name, whole);
    return true;
  }

  /**
   * Takes calls from the bucket in Redis, or gives calls back if `count` is negative. Returns how many ms the caller
   * must wait.
   */
  async #send({ kind, name, partition }: Bucket, count: number): Promise<number> {
    const { scripts, keys } = this.#context;
    const { calls, seconds } = this.#rates[kind] as Rate;
    const args = { calls, interval_us: Math.round((seconds * 1_000_000) / calls), count };
    return (await scripts.call('limits/take', partition, { bucket: keys.rate(partition, name) }, args)).wait;
  }

  #ask(bucket: Bucket, weight: number, now: number): Promise<number> {
    const { kind, name } = bucket;
    const rate = this.#rates[kind] as Rate;
    const { calls } = rate;
    const count = isFast(rate) ? Math.max(weight, Math.floor(calls / chunkShare)) : weight;
    const grant: Grant = { left: count - weight, until: now + spareMs, answer: undefined };
    grant.answer = this.#send(bucket, count)
      .then((wait) => {
        grant.answer = undefined;
        if (wait === 0) return wait;
        grant.left = 0;
        if (this.#waits.size >= limits.rate_memory_max) this.#waits.clear();
        this.#waits.set(name, this.#context.time.monotonic() + wait);
        return wait;
      })
      .catch((error) => {
        grant.left = 0;
        throw error;
      });
    if (grant.left > 0) {
      if (this.#grants.size >= limits.rate_memory_max) this.#grants.clear();
      this.#grants.set(name, grant);
    }
    return grant.answer;
  }
}
