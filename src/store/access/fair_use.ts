/**
 * Rate limits: token buckets per bot, per owner, per person, per chat and per client address, shared by all nodes
 * (behaviour §14). A bucket is one Redis string that expires when the bucket is full. While a caller must wait, its
 * node rejects calls without asking Redis, because nothing can shorten the wait. For fast rates each node admits a
 * tenth on its own, so n nodes together admit at most 1 + n / 10 times the rate.
 */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { clusterSlot } from '../../redis/slots.js';
import type { StoreContext } from '../core/context.js';
import type { Bot } from '../core/control.js';
import { type ChatRef, chatText, isDirect } from '../core/keys.js';

/** A bucket of `calls`, which refills evenly within `seconds`. */
export interface Rate {
  readonly calls: number;
  readonly seconds: number;
}

/** Rates by kind of bucket. A rate that is absent or has 0 calls is unlimited. */
export interface Rates {
  readonly bot?: Rate | undefined;
  readonly person?: Rate | undefined;
  readonly owner?: Rate | undefined;
  readonly chat?: Rate | undefined;
  readonly address?: Rate | undefined;
}

export type RateKind = keyof Rates | 'poll';

export interface FairUse {
  /**
   * Counts a bot's call, also against the chat that it changes. `weight` is the number of messages it creates, at least
   * 1. Returns undefined when this node admits it without asking Redis. Error: `too_many_requests`.
   */
  call(bot: Bot, chat: ChatRef | null, weight: number): Promise<void> | undefined;
  /** Counts a bot's poll. Polls have the same rate as calls, but at least `pollsMin`. Error: `too_many_requests`. */
  poll(bot: Bot): Promise<void> | undefined;
  /**
   * Counts a person's call, also against the chat that it changes. Each person has a separate bucket per chat, so that
   * people and bots do not use up each other's calls. Error: `too_many_requests`.
   */
  person(user: number, chat: ChatRef | null, weight: number): Promise<void> | undefined;
  /** Counts additional calls of a bot or person, for a call that costs more than one. Error: `too_many_requests`. */
  more(caller: { readonly id: number; readonly isBot: boolean }, calls: number): Promise<void> | undefined;
  /** Counts a client's request; undefined if addresses are unlimited. Error: `too_many_requests`. */
  readonly request: ((address: string) => Promise<void> | undefined) | undefined;
  /** Calls rejected by this node, by kind of bucket. */
  readonly refused: Readonly<Record<RateKind, number>>;
}

interface Bucket {
  readonly kind: RateKind;
  readonly id: string;
  readonly partition: number;
}

/** Calls obtained from Redis in advance. */
interface Grant {
  left: number;
  readonly until: number;
  /** The pending request to Redis; undefined once it was answered. */
  answer: Promise<number> | undefined;
}

/**
 * Divisor for the share of a fast rate that a node admits without asking Redis, so that moderate callers cost no
 * round trip.
 */
const ownShare = 10;
/** Rates below this many calls a second are counted only in Redis, and therefore exactly. */
const ownRateMin = 10;
/** Minimum rate of polls: a bot with a slow rate must still be able to fetch its updates. */
const pollsMin: Rate = { calls: 100, seconds: 10 };
/** Divisor for the share of a bucket that is requested from Redis at once. */
const chunkShare = 100;
/** How long a node keeps unused calls that it obtained, in ms. */
const spareMs = 1_000;

const isFast = ({ calls, seconds }: Rate) => calls / seconds >= ownRateMin;

/** Creates the rate limits. Returns undefined if all rates are unlimited, so that calls cost nothing. */
export function createFairUse(
  { scripts, keys }: StoreContext,
  given: Rates,
  isMember: (chat: ChatRef, bot: number) => Promise<boolean>,
): FairUse | undefined {
  const rates = Object.fromEntries(
    Object.entries(given).filter(([, rate]) => rate !== undefined && rate.calls > 0),
  ) as { [K in RateKind]?: Rate };
  if (Object.keys(rates).length === 0) return undefined;
  if (rates.bot) rates.poll = isFast(rates.bot) ? rates.bot : pollsMin;
  const { partitions } = keys;
  const refused: Record<RateKind, number> = { bot: 0, poll: 0, person: 0, owner: 0, chat: 0, address: 0 };
  /** Until when each bucket's caller must wait, by the monotonic clock. */
  const waits = new Map<string, number>();
  /** Time at which the share that this node admits on its own is full again, by the monotonic clock. */
  const own = new Map<string, number>();
  const grants = new Map<string, Grant>();

  function refuse(kind: RateKind, waitMs: number): never {
    refused[kind]++;
    return fail('too_many_requests', { retry_after: Math.ceil(waitMs / 1_000) });
  }

  const nameOf = ({ kind, id }: Bucket) => `${kind}:${id}`;

  function refuseKnown({ kind }: Bucket, name: string, now: number): void {
    const until = waits.get(name);
    if (until === undefined) return;
    if (until > now) refuse(kind, until - now);
    waits.delete(name);
  }

  function isOwn({ kind }: Bucket, name: string, weight: number, now: number): boolean {
    const rate = rates[kind] as Rate;
    const { calls, seconds } = rate;
    const most = isFast(rate) ? Math.floor(calls / ownShare) : 0;
    if (most < weight) return false;
    const interval = (seconds * 1_000 * ownShare) / calls;
    const whole = Math.max(own.get(name) ?? 0, now) + interval * weight;
    if (whole - now > most * interval) return false;
    if (own.size >= limits.rate_memory_max) own.clear();
    own.set(name, whole);
    return true;
  }

  /** Takes calls from the bucket in Redis, including some in advance. */
  function ask({ kind, partition }: Bucket, name: string, weight: number, now: number): Promise<number> {
    const rate = rates[kind] as Rate;
    const { calls, seconds } = rate;
    const count = isFast(rate) ? Math.max(weight, Math.floor(calls / chunkShare)) : weight;
    const grant: Grant = { left: count - weight, until: now + spareMs, answer: undefined };
    grant.answer = scripts
      .call(
        'limits/take',
        partition,
        { bucket: keys.rate(partition, name) },
        { calls, interval_us: Math.round((seconds * 1_000_000) / calls), count },
      )
      .then(({ wait }) => {
        grant.answer = undefined;
        if (wait === 0) return wait;
        grant.left = 0;
        if (waits.size >= limits.rate_memory_max) waits.clear();
        waits.set(name, performance.now() + wait);
        return wait;
      })
      .catch((error) => {
        grant.left = 0;
        throw error;
      });
    if (grant.left > 0) {
      if (grants.size >= limits.rate_memory_max) grants.clear();
      grants.set(name, grant);
    }
    return grant.answer;
  }

  /**
   * Returns how long a call must wait in ms; undefined if it need not ask Redis. Simultaneous calls share one request
   * to Redis, because a few calls that each take a whole chunk would empty the bucket.
   */
  function take(bucket: Bucket, name: string, weight: number, now: number): Promise<number> | undefined {
    if (isOwn(bucket, name, weight, now)) return undefined;
    const grant = grants.get(name);
    if (grant === undefined || grant.until < now || grant.left < weight)
      return ask(bucket, name, weight, now);
    grant.left -= weight;
    return grant.answer;
  }

  async function refuseLongest(
    asked: ReadonlyArray<{ readonly kind: RateKind; readonly answer: Promise<number> }>,
  ): Promise<void> {
    const taken = await Promise.all(asked.map(({ answer }) => answer));
    const longest = Math.max(...taken);
    if (longest > 0) refuse((asked[taken.indexOf(longest)] as (typeof asked)[number]).kind, longest);
  }

  /** Takes a call from all its buckets; it counts even if one of them rejects it. */
  function takeAll(buckets: readonly Bucket[], weight: number): Promise<void> | undefined {
    const now = performance.now();
    const named = buckets.map((bucket) => [bucket, nameOf(bucket)] as const);
    for (const [bucket, name] of named) refuseKnown(bucket, name, now);
    const asked = named.flatMap(([bucket, name]) => {
      const answer = take(bucket, name, weight, now);
      return answer === undefined ? [] : [{ kind: bucket.kind, answer }];
    });
    return asked.length === 0 ? undefined : refuseLongest(asked);
  }

  const bucketOf = (kind: RateKind, id: string, of: number): Bucket => ({
    kind,
    id,
    partition: partitions.of(of),
  });

  function countRequest(address: string): Promise<void> | undefined {
    // An unknown address is not limited.
    if (address === '') return undefined;
    return takeAll([{ kind: 'address', id: address, partition: clusterSlot(address) % partitions.count }], 1);
  }

  /**
   * Counts a bot's call against a chat. A bot that is not in the chat gets a separate bucket there; otherwise any bot
   * could use up the calls of any chat.
   */
  function takeInChat(bot: Bot, chat: ChatRef, weight: number): Promise<void> | undefined {
    const bucket = bucketOf('chat', chatText(chat), chat.id);
    if (isDirect(chat)) return takeAll([bucket], weight);
    if (isOwn(bucket, nameOf(bucket), weight, performance.now())) return undefined;
    const apart = bucketOf('chat', `${chatText(chat)}|${bot.id}`, chat.id);
    return isMember(chat, bot.id).then((member) => takeAll([member ? bucket : apart], weight));
  }

  return {
    call(bot, chat, weight) {
      const ofOwner = () => rates.owner && takeAll([bucketOf('owner', String(bot.owner), bot.owner)], weight);
      const inChat = () => (rates.chat && chat ? takeInChat(bot, chat, weight) : undefined);
      const others = (): Promise<void> | undefined => {
        const owned = ofOwner();
        return owned === undefined ? inChat() : owned.then(inChat);
      };
      // The bot's own bucket comes first, so that rejected calls of a noisy bot take nothing from its owner's other
      // bots or its chats.
      const first = rates.bot && takeAll([bucketOf('bot', String(bot.id), bot.id)], weight);
      return first === undefined ? others() : first.then(others);
    },
    poll: (bot) => rates.poll && takeAll([bucketOf('poll', String(bot.id), bot.id)], 1),
    person(user, chat, weight) {
      const others = (): Promise<void> | undefined =>
        rates.chat && chat
          ? takeAll([bucketOf('chat', `${chatText(chat)}|${user}`, chat.id)], weight)
          : undefined;
      const first = rates.person && takeAll([bucketOf('person', String(user), user)], 1);
      return first === undefined ? others() : first.then(others);
    },
    more({ id, isBot }, calls) {
      const kind = isBot ? 'bot' : 'person';
      return rates[kind] && takeAll([bucketOf(kind, String(id), id)], calls);
    },
    request: rates.address && countRequest,
    refused,
  };
}
