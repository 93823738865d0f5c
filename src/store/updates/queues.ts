/** Reads a bot's update queue, for polling and webhooks. */
import { fail } from '../../errors.js';
import { loadMask, loadQueueSettings } from '../../postgres/webhooks/webhooks.js';
import { defaultUpdateMask, type UpdateKind } from '../../rules/update_kinds.js';
import { type Profile, unpack } from '../core/codec.js';
import { fillAttemptsMax, type StoreContext } from '../core/context.js';
import { parseChat } from '../core/keys.js';
import { type Poll, readAnswer, readPoll } from '../core/poll_record.js';
import { byUse, type EmojiCount } from '../core/post_record.js';
import { botOf } from '../core/queue_ids.js';
import { packRoutes, readRecord } from '../core/route_record.js';
import { type StoredMessage, storedMessage } from '../core/stored_message.js';
import { storeLimits as limits } from '../limits.js';

export interface UpdateEntry {
  readonly updateId: number;
  /** The id by which receivers know the update. Differs from `updateId` if the update was replayed. */
  readonly shownId: number;
  readonly kind: UpdateKind;
  /** A message id, or the id of a callback query. */
  readonly id: string;
  /** The message. In an update about reaction counts, only its date is set. */
  readonly message: StoredMessage;
  /** The person or bot that sent or edited the message, or pressed the button. */
  readonly from: Profile;
  readonly press: PressExtra | null;
  /** The reaction counts, sorted by use. Set only in updates about reaction counts. */
  readonly counts: readonly EmojiCount[] | null;
  readonly poll: Poll | null;
  readonly answer: readonly number[] | null;
  /** The inline query. Set only in updates about inline queries. */
  readonly question: InlineQuestion | null;
  /** The chosen result. Set only in updates about chosen inline results. */
  readonly choice: InlineChoice | null;
}

/** The fields of an inline query. Its sender is in the entry's `from`. */
export interface InlineQuestion {
  readonly query: string;
  readonly offset: string;
  readonly chat_type: 'sender' | 'private' | 'group' | 'channel';
}

/** The fields of a chosen inline result. The person is in the entry's `from`. */
export interface InlineChoice {
  readonly result_id: string;
  readonly query: string;
  readonly inline_message_id?: string;
}

export interface PressExtra {
  readonly message_id: number;
  readonly data: string;
  /**
   * The inline message id, and the value of `chat_instance`. Set only for a message that a person sent as one of this
   * bot's inline results.
   */
  readonly inline?: { readonly id: string; readonly instance: string };
}

export interface QueueInfo {
  readonly pending: number;
  readonly mask: number;
  /** The last failed delivery, if a webhook is set. Its date is Unix time in seconds. */
  readonly error: { readonly date: number; readonly message: string } | null;
  /**
   * The Unix time in seconds at which a worker that was serving this bot was last found to have died. Null if this was
   * more than a day ago.
   */
  readonly strayed: number | null;
  /** How many updates became dead letters. */
  readonly dead: number;
  /** The time of the next retry, as Unix time in ms. Null if no update waits for a retry. */
  readonly nextTryAt: number | null;
}

export type Queues = ReturnType<typeof createQueues>;

const nothing: Buffer = Buffer.alloc(0);

const letters = Array.from({ length: 128 }, (_, code) => String.fromCharCode(code));

/** Decodes the name of a field of an entry. Names of one ASCII letter, which are the most common, are looked up. */
const nameOf = (bytes: Buffer): string =>
  bytes.length === 1 ? (letters[bytes[0] as number] ?? String(bytes)) : String(bytes);

export function readEntry(raw: unknown): {
  readonly id: string;
  readonly fields: Readonly<Record<string, Buffer>>;
} {
  const [id, list] = raw as [Buffer, Buffer[]];
  const fields: Record<string, Buffer> = {};
  for (let i = 0; i < list.length; i += 2) fields[nameOf(list[i] as Buffer)] = list[i + 1] as Buffer;
  return { id: String(id), fields };
}

const readCounts = (extra: unknown): EmojiCount[] =>
  (extra as Array<[string, number, number]>)
    .map(([emoji, count, first]) => ({ emoji, count, first }))
    .sort(byUse);

/** In a direct chat, the entry stores one profile for both the sender and the chat. */
export function readUpdate(raw: unknown): UpdateEntry {
  const { id, fields } = readEntry(raw);
  return readUpdateFields(Number(id.slice(0, id.indexOf('-'))), fields);
}

export function readUpdateFields(updateId: number, fields: Readonly<Record<string, Buffer>>): UpdateEntry {
  const field = (name: string) => fields[name] as Buffer;
  const chat = parseChat(String(field('c')));
  const name = String(field('m'));
  const kind = String(field('k')) as UpdateKind;
  const extra = field('x').length > 0 ? unpack<unknown>(field('x')) : null;
  const press = kind === 'callback_query' ? (extra as PressExtra) : null;
  const from = unpack<Profile>(field('f'));
  const peer = field('p').length > 0 ? field('p') : from;
  return {
    updateId,
    shownId: fields.u === undefined ? updateId : Number(String(fields.u)),
    kind,
    id: name,
    message: storedMessage(chat, press?.message_id ?? Number(name), field('r'), peer, field('y')),
    from,
    press,
    counts: kind === 'message_reaction_count' ? readCounts(extra) : null,
    poll: kind === 'poll' ? readPoll(extra) : null,
    answer: kind === 'poll_answer' ? readAnswer(extra) : null,
    question: kind === 'inline_query' ? (extra as InlineQuestion) : null,
    choice: kind === 'chosen_inline_result' ? (extra as InlineChoice) : null,
  };
}

export function createQueues({ db, shards, scripts, keys, secrets, random }: StoreContext) {
  const partitionOf = (queue: number) => keys.partitions.of(botOf(queue));
  const at = (queue: number) => ({
    state: keys.queueState(queue),
    queue: keys.queue(queue),
    retries: keys.retries(queue),
  });
  async function load(bot: number) {
    const [mask, { hook, set, gone, routes_box: box, version, suspended }] = await Promise.all([
      loadMask(shards.at(partitionOf(bot)), bot),
      loadQueueSettings(db, bot),
    ]);
    const asked = mask === null ? defaultUpdateMask : (unpack<[number]>(mask)[0] ?? defaultUpdateMask);
    const record = box && readRecord(secrets.open(box, `webhook:${bot}:routes`));
    return {
      gone,
      settings: {
        ...{ mask: asked, hook: hook === null ? '' : String(hook), set: String(set ?? 0) },
        routes: record ? packRoutes(record, version ?? 0, !suspended) : nothing,
      },
    };
  }

  return {
    /**
     * Opens a bot's queue, with the settings from Postgres, if the queue is not open. Update ids start at a random
     * value. Returns false if the bot was deleted and has no queue. Error: `unavailable`, for example if Redis keeps
     * restarting.
     */
    async open(bot: number): Promise<boolean> {
      const partition = partitionOf(bot);
      const at = { meta: keys.meta(partition), state: keys.queueState(bot), routes: keys.routes(bot) };
      // The first call passes the invalid incarnation 0, so that the script only returns the current incarnation.
      let [known, settings] = [0, { mask: 0, hook: '', set: '', routes: nothing }];
      for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
        // Each attempt starts at a new random id. In an earlier attempt, Redis may have opened the queue and assigned
        // ids, and then lost both.
        const start = random.int(limits.update_id_start_min, limits.update_id_start_max);
        const result = await scripts.call('updates/open_queue', partition, at, { known, start, ...settings });
        if (result.status === 'ok') return true;
        const loaded = await load(bot);
        if (loaded.gone) return false;
        known = result.incarnation;
        settings = loaded.settings;
      }
      return fail('unavailable', { retry_after: 1 });
    },
    /** Returns the state of a queue, which belongs to a bot or to a route. */
    async info(queue: number): Promise<QueueInfo> {
      const info = await scripts.call('updates/info', partitionOf(queue), at(queue), {});
      const { pending, mask, failed, why, strayed, now, dead, next } = info;
      const recent = (date: number) => (now - date) * 1_000 < limits.webhook_error_age_ms_max;
      return {
        pending,
        mask: mask ?? (await load(botOf(queue))).settings.mask,
        error: failed !== null && why !== null && recent(failed) ? { date: failed, message: why } : null,
        strayed: strayed !== null && recent(strayed) ? strayed : null,
        dead,
        nextTryAt: next,
      };
    },
  };
}
