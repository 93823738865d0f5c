/**
 * Replays stored updates into the webhook of a bot or of one of its routes (decision 0081). A replay has its own queue.
 * Workers add updates to this queue in small steps, and only while the live updates of the target are on time.
 */
import { fail } from '../../errors.js';
import { loadOwnedSince } from '../../postgres/bots/bots.js';
import * as rows from '../../postgres/webhooks/history_replays.js';
import { ruleLimits } from '../../rules/limits.js';
import { kindBit, kindsOf, type UpdateKind } from '../../rules/update_kinds.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import { queueId } from '../core/queue_ids.js';
import { routeAt } from '../core/route_record.js';
import { queueKeys } from '../core/script_keys.js';
import { storeLimits as limits } from '../limits.js';
import { type Queues, readEntry } from '../updates/queues.js';
import { unpackUpdate } from '../updates/update_record.js';
import { createQueueSwitch, type QueueSwitch } from './queue_switch.js';
import type { Webhooks } from './webhooks.js';

export interface HistoryReplay extends rows.ReplayRow {
  /**
   * The name of the route that gets the updates. Undefined if the webhook itself gets them, or if the route was deleted.
   */
  readonly route: string | undefined;
  readonly pending: number;
  readonly error: string | null;
}

export interface HistoryReplayAsk {
  readonly slot: number;
  /** The first `update_id`. */
  readonly from: number;
  /** Unix time in s. */
  readonly fromTime: number | null;
}

type Fields = Readonly<Record<string, Buffer>>;

interface Found {
  readonly id: number;
  readonly fields: Fields;
}

interface Progress {
  readonly reached: number;
  readonly fed: number;
  readonly pending: number;
  readonly dead: number;
  readonly error: string | null;
  readonly late: boolean;
}

const names = ['k', 'c', 'm', 'r', 'f', 'p', 'y', 'x'] as const;
const nothing = { reached: null, fed: 0, pending: 0, dead: 0 };
const queueOf = (bot: number) => queueId(bot, ruleLimits.replay_slot);

/**
 * The updates of one source, in the order of their ids. If `isPart` is true, updates with ids above `end` were not
 * read.
 */
interface Source {
  readonly found: readonly Found[];
  readonly isPart: boolean;
  readonly end: number;
}

/**
 * Reads a queue's pending updates. Omits updates with an original id, because these were replayed or moved, and the
 * queue of their target delivers them.
 */
function pendingIn([entries, more]: readonly [unknown[], number]): Source {
  const all = entries.map((entry) => {
    const { id, fields } = readEntry(entry);
    return { id: Number.parseInt(id, 10), fields };
  });
  const found = all.filter(({ fields }) => fields.u === undefined);
  return { found, isPart: Number(more) === 1, end: all.at(-1)?.id ?? 0 };
}

/** Merges the next updates of all sources. The result contains all updates with ids up to the returned `end`. */
function merged(sources: readonly Source[], last: number): { found: readonly Found[]; end: number } {
  const end = Math.min(last, ...sources.filter(({ isPart }) => isPart).map((source) => source.end));
  const byId = new Map(sources.flatMap(({ found }) => found.map((each) => [each.id, each] as const)));
  const sorted = [...byId.values()].filter(({ id }) => id <= end).sort((a, b) => a.id - b.id);
  const found = sorted.slice(0, limits.replay_batch_max);
  return { found, end: found.length < sorted.length ? (found.at(-1)?.id ?? end) : end };
}

export class HistoryReplays {
  readonly #context: StoreContext;
  readonly #queues: Queues;
  readonly #webhooks: Pick<Webhooks, 'find' | 'routes'>;
  readonly #switch: QueueSwitch;
  readonly #wake: (queue: number) => void;

  constructor(
    context: StoreContext,
    queues: Queues,
    webhooks: Pick<Webhooks, 'find' | 'routes'>,
    wake: (queue: number) => void,
  ) {
    this.#context = context;
    this.#queues = queues;
    this.#webhooks = webhooks;
    this.#switch = createQueueSwitch(context, queues, wake);
    this.#wake = wake;
  }

  get #db() {
    return this.#context.db;
  }

  #at(bot: number) {
    const { keys } = this.#context;
    return { partition: keys.partitions.of(bot), its: queueKeys(keys, bot) };
  }

  /** Opens the queue of a replay, unless the replay has meanwhile ended. */
  async #open(row: rows.ReplayRow): Promise<void> {
    const { id, bot, slot, from } = row;
    const { partition, its } = this.#at(bot);
    const args = {
      bot: String(bot),
      replay: String(id),
      slot: String(slot),
      from: String(Math.max(0, from - 1)),
    };
    const opened = await this.#context.scripts.call('webhooks/open_replay', partition, its, args);
    if (opened.status !== 'ok') await this.#queues.open(bot);
    else if ((await rows.loadRunning(this.#db, bot))?.id !== id) await this.#close(row);
  }

  #read(bot: number, after: number, last: number, slots: readonly number[]) {
    const { partition, its } = this.#at(bot);
    const args = { bot: String(bot), from: String(after), last: String(last), slots: slots.map(String) };
    return this.#context.scripts.call('webhooks/read_replay', partition, its, args);
  }

  /** Returns the id of the bot's newest update. */
  async #newest(bot: number): Promise<number> {
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const { newest } = await this.#read(bot, 0, 0, []);
      if (newest !== null) return newest;
      await this.#queues.open(bot);
    }
    return fail('unavailable', { retry_after: 1 });
  }

  /** Returns the progress of a replay. Returns null if its queue is not open. */
  async #progress({ id, bot }: rows.ReplayRow): Promise<Progress | null> {
    const { replay, at: reached, fed, pending, dead, why, late } = await this.#read(bot, 0, 0, []);
    if (replay !== id) return null;
    return { reached: reached ?? 0, fed: fed ?? 0, pending, dead: dead ?? 0, error: why, late };
  }

  async #close({ id, bot }: rows.ReplayRow): Promise<void> {
    const { partition, its } = this.#at(bot);
    const args = { bot: String(bot), replay: String(id) };
    await this.#context.scripts.call('webhooks/close_replay', partition, its, args);
    await rows.closeReplay(this.#db, id);
  }

  async #end(row: rows.ReplayRow, cancelled: boolean): Promise<void> {
    const { reached, fed, dead, pending } = (await this.#progress(row)) ?? nothing;
    // Does not count pending updates as delivered, because they are dropped together with the queue.
    const figures = { reached, fed: fed - pending, dead };
    await rows.endReplay(this.#db, row.bot, row.id, cancelled, figures);
    await this.#close(row);
  }

  async #shown(row: rows.ReplayRow): Promise<HistoryReplay> {
    const route = routeAt(await this.#webhooks.routes(row.bot), row.slot, row.started * 1_000)?.name;
    const now = row.ended === null ? await this.#progress(row) : null;
    if (now === null) return { ...row, route, pending: 0, error: null };
    const { reached, fed, pending, dead, error } = now;
    return { ...row, route, reached, fed, pending, dead, error };
  }

  /**
   * Reads the next updates with ids above `after`. The result contains all updates with ids up to the returned `end`.
   */
  async #next(row: rows.ReplayRow, after: number): Promise<{ found: readonly Found[]; end: number }> {
    const { bot, last, fromTime } = row;
    const slots = [0, ...(await this.#webhooks.routes(bot)).map(({ slot }) => slot)];
    const others = slots.filter((slot) => slot !== row.slot);
    // Reads Redis before Postgres, because updates move from Redis to Postgres.
    const { found: raw } = await this.#read(bot, after, last, others);
    const { shards, keys } = this.#context;
    const stored = await rows.loadStored(
      shards.at(keys.partitions.of(bot)),
      bot,
      { after, last, since: new Date((fromTime ?? 0) * 1_000), owned: await loadOwnedSince(this.#db, bot) },
      limits.replay_batch_max,
    );
    const sources = (raw as ReadonlyArray<readonly [unknown[], number]>).map(pendingIn);
    sources.push({
      found: stored.map(({ id, record }) => ({ id, fields: unpackUpdate(record) })),
      isPart: stored.length === limits.replay_batch_max,
      end: stored.at(-1)?.id ?? last,
    });
    return merged(sources, last);
  }

  /**
   * Returns a function that says whether the replay's target takes an update. Inline queries are never replayed,
   * because nobody waits for their answers any more.
   */
  async #filter({ bot, slot, fromTime }: rows.ReplayRow) {
    const kinds = kindsOf((await this.#queues.info(queueId(bot, slot))).mask);
    return ({ fields }: Found) => {
      const kind = String(fields.k) as UpdateKind;
      if (kind === 'inline_query' || (kinds & kindBit(kind)) === 0) return false;
      return fromTime === null || Number(String(fields.t)) >= fromTime * 1_000;
    };
  }

  async #feed(row: rows.ReplayRow, after: number): Promise<boolean> {
    const takes = await this.#filter(row);
    const { found, end } = await this.#next(row, after);
    const updates = found
      .filter(takes)
      .flatMap(({ id, fields }) => [String(id), ...names.map((name) => fields[name] as Buffer)]);
    const { partition, its } = this.#at(row.bot);
    const args = {
      bot: String(row.bot),
      replay: String(row.id),
      from: String(after),
      to: String(end),
      updates,
    };
    const result = await this.#context.scripts.call('webhooks/feed_replay', partition, its, args);
    if (result.status === 'queue_missing') await this.#queues.open(row.bot);
    if (result.status === 'ok' && result.wake) this.#wake(queueOf(row.bot));
    return result.status === 'ok';
  }

  /**
   * Switches the replay's queue to the current settings of the replay's target. Returns false if the target was
   * removed.
   */
  async #follow({ bot }: rows.ReplayRow): Promise<boolean> {
    const webhook = await this.#webhooks.find(queueOf(bot));
    if (webhook === null) return false;
    const version = String(webhook.version);
    await this.#switch.tryTo(queueOf(bot), { version, set: version, active: true, drop: '', mask: '' });
    return true;
  }

  /** Starts a replay. Errors: `replay_running`, `unavailable`. */
  async start(bot: number, { slot, from, fromTime }: HistoryReplayAsk): Promise<HistoryReplay> {
    const last = await this.#newest(bot);
    // Closes the queue of the bot's previous replay. It may still be open although that replay has ended.
    const ended = await rows.loadUnclosed(this.#db, bot);
    if (ended !== null) await this.#close(ended);
    const made = await rows.insertReplay(this.#db, { bot, slot, from, fromTime, last }, limits.replays_kept);
    return made === null ? fail('replay_running') : this.#shown(made);
  }

  /** Returns the bot's latest replays, newest first. */
  async list(bot: number): Promise<readonly HistoryReplay[]> {
    const since = await loadOwnedSince(this.#db, bot);
    const found = await rows.loadReplays(this.#db, bot, since, limits.replays_kept);
    return Promise.all(found.map((row) => this.#shown(row)));
  }

  /**
   * Cancels a replay. Its pending updates are not delivered. Does nothing if the replay has ended. Error:
   * `replay_not_found`.
   */
  async cancel(bot: number, id: number): Promise<HistoryReplay> {
    const since = await loadOwnedSince(this.#db, bot);
    const find = async () => {
      const found = await rows.loadReplays(this.#db, bot, since, limits.replays_kept);
      return found.find((row) => row.id === id) ?? fail('replay_not_found');
    };
    const row = await find();
    if (row.ended === null) await this.#end(row, true);
    return this.#shown(await find());
  }

  claim(): Promise<readonly rows.ReplayRow[]> {
    return rows.claimReplays(this.#db, limits.replays_served_max, limits.replay_claim_ms);
  }

  release({ id }: rows.ReplayRow): Promise<void> {
    return rows.releaseReplay(this.#db, id);
  }

  /** Prepares a claimed replay. Returns false if the replay is over. */
  async begin(row: rows.ReplayRow): Promise<boolean> {
    if (row.ended !== null) {
      await this.#close(row);
      return false;
    }
    // Ends the replay if the bot has a new owner. The replay's queue may have updates from the former owner's time, and
    // the new owner can neither see nor cancel the replay.
    const isOwned = await rows.isOfOwner(this.#db, row.id);
    if (isOwned && (await this.#progress(row)) === null) await this.#open(row);
    if (isOwned && (await this.#follow(row))) return true;
    await this.#end(row, true);
    return false;
  }

  /** Performs one step of a replay. Returns false if the replay is over. */
  async step(row: rows.ReplayRow): Promise<boolean> {
    const now = await this.#progress(row);
    if (now === null) return false;
    const isFed = now.reached >= row.last;
    if (isFed && now.pending === 0) await this.#end(row, false);
    if (isFed) return now.pending > 0;
    if (now.late || now.pending >= limits.replay_pending_max) return true;
    return this.#feed(row, now.reached);
  }
}
