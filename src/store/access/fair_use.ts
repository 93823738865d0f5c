/**
 * Token buckets by setting: how many calls a bot, its owner's bots together, a chat or a client address may make in a time, on
 * all nodes together (behaviour §14). A bucket is one text in Redis that expires when it is full. While a caller is to wait, its
 * node knows, and refuses without asking again: nothing that anybody else does can make the wait shorter. Of a fast rate each
 * node admits a tenth by itself, so that n nodes together admit at most 1 + n / 10 times the rate.
 */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { clusterSlot } from '../../redis/slots.js';
import type { StoreContext } from '../core/context.js';
import type { Bot } from '../core/control.js';
import { type ChatRef, chatText, isDirect } from '../core/keys.js';

/** So many calls at once, which come back evenly within so many seconds. */
export interface Rate {
  readonly calls: number;
  readonly seconds: number;
}

/** What is absent or allows 0 calls has no bound. */
export interface Rates {
  readonly bot?: Rate | undefined;
  readonly person?: Rate | undefined;
  readonly owner?: Rate | undefined;
  readonly chat?: Rate | undefined;
  readonly address?: Rate | undefined;
}

export type RateKind = keyof Rates | 'poll';

export interface FairUse {
  /** Counts a call of a bot, and against the chat that it changes; `weight` is how many messages it makes, at least 1. Undefined
   * when this node admits it without asking Redis. Error: `too_many_requests`. */
  call(bot: Bot, chat: ChatRef | null, weight: number): Promise<void> | undefined;
  /** Counts a poll of a bot, of which it may make as many as of all other calls together, and at least `pollsMin`. Error:
   * `too_many_requests`. */
  poll(bot: Bot): Promise<void> | undefined;
  /** Counts a call of a person, and against the chat that it changes. Everybody has a bucket of their own there, so that no
   * person takes from the bots of the chat, nor a bot from its people. Error: `too_many_requests`. */
  person(user: number, chat: ChatRef | null, weight: number): Promise<void> | undefined;
  /** Counts what a call of a bot or a person costs beyond itself as so many more of its calls. Error: `too_many_requests`. */
  more(caller: { readonly id: number; readonly isBot: boolean }, calls: number): Promise<void> | undefined;
  /** Counts a request of a client; undefined where addresses have no bound. Error: `too_many_requests`. */
  readonly request: ((address: string) => Promise<void> | undefined) | undefined;
  /** Calls that this node refused, by whose bucket was empty. */
  readonly refused: Readonly<Record<RateKind, number>>;
}

interface Bucket {
  readonly kind: RateKind;
  readonly id: string;
  readonly partition: number;
}

/** Calls that Redis was asked for beyond the one that asked. */
interface Grant {
  left: number;
  readonly until: number;
  /** Undefined once Redis has granted them. */
  answer: Promise<number> | undefined;
}

/** What this node admits of a fast rate without asking Redis, as a share of the rate: a calm caller costs no round trip. */
const ownShare = 10;
/** Rates below this many calls a second are counted in Redis alone, call by call, and so exactly. */
const ownRateMin = 10;
/** A bot with a slow rate must still get its updates. */
const pollsMin: Rate = { calls: 100, seconds: 10 };
/** What is asked of Redis at once, as a share of the calls of a bucket. */
const chunkShare = 100;
/** How long a node keeps what it got and did not need, in ms. */
const spareMs = 1_000;

const isFast = ({ calls, seconds }: Rate) => calls / seconds >= ownRateMin;

/** Undefined where nothing has a bound: calls then pay nothing for it. */
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
  /** Until when the owner of a bucket is to wait, by the monotonic clock. */
  const waits = new Map<string, number>();
  /** When the share that this node admits on its own is whole again, by the monotonic clock. */
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

  /** Asks Redis for the calls and some more. */
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
   * How long a call is to wait, in ms; undefined when it need not ask. Calls that arrive together share a question to Redis: if
   * each took a whole chunk, few of them would empty the bucket.
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

  /** A call counts against all of these, also where one refuses it. */
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
    // One that is not known is nobody's.
    if (address === '') return undefined;
    return takeAll([{ kind: 'address', id: address, partition: clusterSlot(address) % partitions.count }], 1);
  }

  /** A bot that is not in the chat has a bucket of its own there, or anybody's bot could use up the calls of any chat. */
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
      // What a noisy bot is refused takes nothing from the other bots of its owner, nor from those in its chats.
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
