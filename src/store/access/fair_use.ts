/**
 * Token buckets by setting: how many calls a bot, its owner's bots together, a chat or a client address may make in a time, on
 * all nodes together (behaviour §14). A bucket is one text in Redis that expires when it is full. While a caller is to wait, its
 * node knows, and refuses without asking again: nothing that anybody else does can make the wait shorter.
 */
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';
import { clusterSlot } from '../../redis/slots.js';
import type { StoreContext } from '../core/context.js';
import type { Bot } from '../core/control.js';
import { type ChatRef, chatText } from '../core/keys.js';

/** So many calls at once, which come back evenly within so many seconds. */
export interface Rate {
  readonly calls: number;
  readonly seconds: number;
}

/** What is absent has no bound. */
export interface Rates {
  readonly bot?: Rate | undefined;
  readonly owner?: Rate | undefined;
  readonly chat?: Rate | undefined;
  readonly address?: Rate | undefined;
}

export type RateKind = keyof Rates;

export interface FairUse {
  /** Counts a call of a bot, and against the chat that it changes. Error: `too_many_requests`. */
  call(bot: Bot, chat: ChatRef | null): Promise<void>;
  /** Counts what a person changes in a chat. Everybody has a bucket of their own there, so that no person takes from the bots of
   * the chat, nor a bot from its people. Error: `too_many_requests`. */
  person(user: number, chat: ChatRef): Promise<void>;
  /** Counts a request of a client; undefined where addresses have no bound. Error: `too_many_requests`. */
  readonly request: ((address: string) => Promise<void>) | undefined;
  /** Calls that this node refused, by whose bucket was empty. */
  readonly refused: Readonly<Record<RateKind, number>>;
}

interface Bucket {
  readonly kind: RateKind;
  readonly id: string;
  readonly partition: number;
}

/** Undefined where nothing has a bound: calls then pay nothing for it. */
export function createFairUse({ scripts, keys }: StoreContext, rates: Rates): FairUse | undefined {
  if (Object.values(rates).every((rate) => rate === undefined)) return undefined;
  const { partitions } = keys;
  const refused: Record<RateKind, number> = { bot: 0, owner: 0, chat: 0, address: 0 };
  /** Until when the owner of a bucket is to wait, by the monotonic clock. */
  const waits = new Map<string, number>();

  function refuse(kind: RateKind, waitMs: number): never {
    refused[kind]++;
    return fail('too_many_requests', { retry_after: Math.ceil(waitMs / 1_000) });
  }

  const nameOf = ({ kind, id }: Bucket) => `${kind}:${id}`;

  function refuseKnown(bucket: Bucket): void {
    const name = nameOf(bucket);
    const until = waits.get(name);
    if (until === undefined) return;
    const left = until - performance.now();
    if (left > 0) refuse(bucket.kind, left);
    waits.delete(name);
  }

  async function take(bucket: Bucket): Promise<number> {
    const { calls, seconds } = rates[bucket.kind] as Rate;
    const { wait } = await scripts.call(
      'limits/take',
      bucket.partition,
      { bucket: keys.rate(bucket.partition, nameOf(bucket)) },
      { calls, interval_us: Math.round((seconds * 1_000_000) / calls) },
    );
    if (wait > 0) {
      if (waits.size >= limits.rate_memory_max) waits.clear();
      waits.set(nameOf(bucket), performance.now() + wait);
    }
    return wait;
  }

  /** A call counts against all of these, also where one refuses it. */
  async function takeAll(buckets: readonly Bucket[]): Promise<void> {
    if (buckets.length === 0) return;
    for (const bucket of buckets) refuseKnown(bucket);
    const taken = await Promise.all(buckets.map(take));
    const longest = Math.max(0, ...taken);
    const at = taken.indexOf(longest);
    if (longest > 0) refuse((buckets[at] as Bucket).kind, longest);
  }

  const bucketOf = (kind: RateKind, id: string, of: number): Bucket => ({
    kind,
    id,
    partition: partitions.of(of),
  });

  async function countRequest(address: string): Promise<void> {
    // One that is not known is nobody's.
    if (address === '') return;
    await takeAll([{ kind: 'address', id: address, partition: clusterSlot(address) % partitions.count }]);
  }

  return {
    async call(bot, chat) {
      // What a noisy bot is refused takes nothing from the other bots of its owner, nor from those in its chats.
      if (rates.bot) await takeAll([bucketOf('bot', String(bot.id), bot.id)]);
      await takeAll([
        ...(rates.owner ? [bucketOf('owner', String(bot.owner), bot.owner)] : []),
        ...(rates.chat && chat ? [bucketOf('chat', chatText(chat), chat.id)] : []),
      ]);
    },
    async person(user, chat) {
      if (rates.chat) await takeAll([bucketOf('chat', `${chatText(chat)}|${user}`, chat.id)]);
    },
    request: rates.address && countRequest,
    refused,
  };
}
