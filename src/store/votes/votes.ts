/**
 * Manages polls and their votes (decision 0048). Redis has the exact counts and the votes of people who voted recently.
 * Everything else is read from Postgres.
 */
import DataLoader from 'dataloader';
import { ApiError, fail } from '../../errors.js';
import * as rows from '../../postgres/messages/polls.js';
import { byShard } from '../../postgres/shards.js';
import type { Sql } from '../../postgres/sql.js';
import type { Time } from '../../time.js';
import { pack, unpack } from '../core/codec.js';
import { fillAttemptsMax, readBackTtlMs, type StoreContext } from '../core/context.js';
import { type ChatRef, chatText, isDirect, partitionOfPost, postId, postNumber } from '../core/keys.js';
import {
  closesAt,
  type Poll,
  type PollDraft,
  type PollRecord,
  type PollState,
  pollFields,
  type ResultsRecord,
  readOptions,
  readState,
  resultFields,
  type VoteRecord,
} from '../core/poll_record.js';
import { pollKeys, sharedKeys, withMessage } from '../core/script_keys.js';
import { storeLimits as limits } from '../limits.js';
import type { Sender } from '../messages/batches.js';
import type { ReadBack } from '../messages/read_back.js';
import { refused } from '../messages/refusals.js';
import type { Forwarder } from '../updates/forwarder.js';

/**
 * A voter: the id, and the profile that the poll's bot gets with the vote. The profile is null if the bot gets no
 * updates about votes.
 */
export interface Voter {
  readonly id: number;
  readonly profile: Sender['profile'] | null;
}

const placeOf = (poll: number): string => `${partitionOfPost(poll)}:${postNumber(poll)}`;

const nothing = Buffer.alloc(0);

/**
 * Creates the numbers of new polls. A number is the Unix time in ms, or the last number plus 1 if this node has already
 * used the current time.
 */
export function createPollNumbers(time: Time): () => number {
  let last = 0;
  return () => {
    last = Math.max(time.now(), last + 1);
    return last;
  };
}

const keyText = ({ partition, number, user = 0 }: rows.PollKey & Partial<rows.VoteKey>): string =>
  `${partition}:${number}:${user}`;

/** Returns a loader that combines all reads of one event loop turn into one query per shard. */
const loaderOf = <K extends rows.PollKey, R extends K>(
  shards: StoreContext['shards'],
  load: (sql: Sql, asked: readonly K[]) => Promise<R[]>,
) =>
  new DataLoader<K, R | null>(
    async (asked) => {
      const own = [...byShard(shards, asked, ({ partition }) => partition).values()];
      const found = await Promise.all(
        own.map((keys) => load(shards.at(...keys.map(({ partition }) => partition)), keys)),
      );
      const byKey = new Map(found.flat().map((row) => [keyText(row), row]));
      return asked.map((key) => byKey.get(keyText(key)) ?? null);
    },
    { cache: false, maxBatchSize: 100 },
  );

export class Votes {
  readonly #context: StoreContext;
  readonly #readBack: ReadBack;
  readonly #forwarder: Forwarder;
  readonly #newNumber: () => number;
  readonly #polls: DataLoader<rows.PollKey, rows.PollRow | null>;
  readonly #votes: DataLoader<rows.VoteKey, rows.VoteRow | null>;

  constructor(context: StoreContext, readBack: ReadBack, forwarder: Forwarder, newNumber: () => number) {
    this.#newNumber = newNumber;
    this.#context = context;
    this.#readBack = readBack;
    this.#forwarder = forwarder;
    this.#polls = loaderOf(context.shards, rows.loadPolls);
    this.#votes = loaderOf(context.shards, rows.loadVotesIn);
  }

  /** Creates a poll for a message in this chat. The poll is stored in the chat's partition. */
  async create(chat: ChatRef, draft: PollDraft): Promise<Poll> {
    const { scripts, keys, time, random } = this.#context;
    const partition = keys.partitions.of(chat.id);
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const id = postId(partition, this.#newNumber());
      const poll: Poll = { ...draft, id: String(id) };
      const record: PollRecord = [chatText(chat), draft.bot, poll];
      const result = await scripts.call('votes/create', partition, pollKeys(keys, id), {
        ...{ token: this.#context.uniqueText(), poll: poll.id, place: placeOf(id), record: pack(record) },
        ...{ closes_ms: poll.closed ? 0 : closesAt(poll), fields: pollFields(record) },
      });
      if (result.status === 'ok') return poll;
      // Waits and tries again, because another process has created a poll with the same number in this partition.
      await time.sleep(random.int(1, 20));
    }
    return fail('too_many_requests', { retry_after: 1 });
  }

  /** Deletes a poll whose message was not sent. */
  async drop({ id }: Poll): Promise<void> {
    const { scripts, keys } = this.#context;
    const poll = Number(id);
    await scripts.call('votes/drop', partitionOfPost(poll), pollKeys(keys, poll), {
      ...{ poll: id, place: placeOf(poll) },
    });
  }

  /** Returns the state of a poll as `who` sees it. Error: `poll_not_found`. */
  async state({ id }: Pick<Poll, 'id'>, who: { readonly id: number; readonly isBot: boolean }) {
    const { scripts, keys } = this.#context;
    const poll = Number(id);
    const partition = partitionOfPost(poll);
    const user = who.isBot ? 0 : who.id;
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const found = await scripts.call('votes/read', partition, pollKeys(keys, poll), {
        ...{
          token: this.#context.uniqueText(),
          who: String(user),
          ttl_ms: readBackTtlMs(this.#context, partition),
        },
      });
      if (found.status === 'ok') {
        const own = user === 0 ? undefined : readOptions(found.own ?? (await this.#loadVote(poll, user)));
        return readState(unpack<ResultsRecord>(found.results), own);
      }
      if (found.status === 'poll_gone') return fail('poll_not_found');
      await this.#fill(poll, found.ticket);
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /**
   * Stores the person's vote. An empty list of options retracts the vote. The caller has checked that the person may
   * see the poll and that the options exist. Errors: `poll_not_found`, `poll_closed`, `vote_final`.
   */
  async cast({ id }: Pick<Poll, 'id'>, voter: Voter, options: readonly number[]): Promise<PollState> {
    const results = await this.#cast(Number(id), voter, 'vote', options);
    return readState(results, options);
  }

  /** Removes the vote of a deleted person, even from a closed poll. */
  async erase(partition: number, number: number, user: number): Promise<void> {
    try {
      await this.#cast(postId(partition, number), { id: user, profile: null }, 'erase', []);
    } catch (error) {
      if (!(error instanceof ApiError && error.kind === 'poll_not_found')) throw error;
    }
  }

  async #cast(poll: number, { id, profile }: Voter, what: 'vote' | 'erase', options: readonly number[]) {
    const { scripts, keys, requestId } = this.#context;
    const partition = partitionOfPost(poll);
    const at = {
      user_ticket: keys.ticket(`${keys.voted(poll)}${id}`),
      request: keys.request(partition, requestId()),
      ...pollKeys(keys, poll),
    };
    const args = {
      vote: pack([String(poll), placeOf(poll), String(id), what, options.join(' ')]),
      from: profile === null ? nothing : pack(profile),
    };
    let token = this.#context.uniqueText();
    let known = '-';
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const result = await scripts.call('votes/cast', partition, at, { token, known, ...args });
      switch (result.status) {
        case 'ok':
          this.#forwarder.followPartition(partition, result);
          return unpack<ResultsRecord>(result.results);
        case 'user_missing':
          token = result.ticket;
          known = await this.#loadVote(poll, id);
          break;
        case 'poll_missing':
          token = this.#context.uniqueText();
          known = '-';
          await this.#fill(poll, result.ticket);
          break;
        case 'poll_gone':
          return fail('poll_not_found');
        case 'outbox_full':
          return fail('too_many_requests', { retry_after: 1 });
        default:
          return fail(result.status);
      }
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /**
   * Closes one of the bot's polls, and replaces the keyboard of the message that contains the poll. Errors:
   * `poll_to_stop_not_found`, `poll_closed`, and the errors for chats in which the bot cannot write.
   */
  async stop(
    { id }: Pick<Poll, 'id'>,
    chat: ChatRef,
    messageId: number,
    bot: Sender,
    markup: Buffer,
  ): Promise<PollState> {
    const { scripts, keys, requestId } = this.#context;
    const poll = Number(id);
    const partition = partitionOfPost(poll);
    const at = {
      ...withMessage(keys, sharedKeys(keys, chat, requestId(), bot.id), chat, messageId),
      ...pollKeys(keys, poll),
    };
    const args = {
      stop: pack([chatText(chat), String(messageId), String(bot.id), id, placeOf(poll)]),
      ...{ direct: isDirect(chat), markup, from: pack(bot.profile) },
    };
    const place = { chat, who: bot, message: { id: messageId, absent: 'poll_to_stop_not_found' } } as const;
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const result = await this.#readBack.complete(place, (token) =>
        scripts.call('votes/stop', partition, at, { ...args, token }),
      );
      if (result.status === 'poll_missing') {
        await this.#fill(poll, result.ticket);
        continue;
      }
      if (result.status !== 'ok')
        return refused(bot, result, {
          ...{ not_found: 'poll_to_stop_not_found', poll_gone: 'poll_to_stop_not_found' },
          poll_closed: 'poll_closed',
        });
      this.#forwarder.followPartition(partition, result);
      return readState(unpack<ResultsRecord>(result.results));
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /**
   * Adds updates about changed and expired polls to the partition's outbox. A change is reported after one second, so
   * that a poll's bot gets at most one update a second. Polls stay due while the outbox is full.
   */
  async tell(partition: number): Promise<void> {
    const { scripts, keys } = this.#context;
    const at = {
      ...{ meta: keys.meta(partition), outbox: keys.outbox(partition) },
      ...{ due: keys.pollsDue(partition), poll: keys.pollRoot(partition) },
    };
    let gone: string[] = [];
    for (;;) {
      const args = { token: this.#context.uniqueText(), limit: limits.counts_batch_max, gone };
      const result = await scripts.call('votes/tell', partition, at, args);
      if (result.status !== 'ok') return;
      gone = [];
      for (let i = 0; i < result.missing.length; i += 2) {
        const [poll, ticket] = result.missing.slice(i, i + 2) as [string, string];
        try {
          await this.#fill(Number(poll), ticket);
        } catch (error) {
          if (!(error instanceof ApiError && error.kind === 'poll_not_found')) throw error;
          gone.push(poll);
        }
      }
      if (!result.more && gone.length === 0) return;
    }
  }

  /** Returns a person's vote from Postgres, as options separated by spaces. */
  async #loadVote(poll: number, user: number): Promise<string> {
    const partition = partitionOfPost(poll);
    const row = await this.#votes.load({ partition, number: postNumber(poll), user });
    return row ? unpack<VoteRecord>(row.record)[0] : '';
  }

  /** Loads a poll into Redis. Error: `poll_not_found`. */
  async #fill(poll: number, token: string): Promise<void> {
    const { scripts, keys } = this.#context;
    const partition = partitionOfPost(poll);
    const row = await this.#polls.load({ partition, number: postNumber(poll) });
    if (!row) return fail('poll_not_found');
    const record = unpack<PollRecord>(row.record);
    const results = row.results ? unpack<ResultsRecord>(row.results) : null;
    const isOpen = !record[2].closed && results?.[1] !== 1;
    await scripts.call('votes/fill', partition, pollKeys(keys, poll), {
      ...{ token, ttl_ms: readBackTtlMs(this.#context, partition), poll: String(poll) },
      closes_ms: isOpen ? closesAt(record[2]) : 0,
      fields: [
        'v',
        String(row.version),
        ...(results ? [] : ['u', '0']),
        ...pollFields(record),
        ...(results ? resultFields(results) : []),
      ],
    });
  }
}
