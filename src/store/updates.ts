/** A bot's updates: its queue, callback queries, and the forwarding of what other partitions hold for it. */
import { randomInt } from 'node:crypto';
import { fail } from '../errors.js';
import { limits } from '../limits.js';
import { defaultUpdateMask, kindBit, type Profile, pack, type UpdateKind, unpack } from './codec.js';
import { fillAttemptsMax, type StoreContext, uniqueText } from './context.js';
import { type ChatRef, chatText, isDirect, parseChat } from './keys.js';
import type { ReadBack } from './read_back.js';
import { type StoredMessage, storedMessage } from './stored_message.js';

/** An update as it waits in a queue. */
export interface UpdateEntry {
  readonly updateId: number;
  readonly kind: UpdateKind;
  /** message id, or the id of a callback query */
  readonly id: string;
  readonly message: StoredMessage;
  /** who sent, edited or pressed */
  readonly from: Profile;
  /** of a callback query */
  readonly press: PressExtra | null;
}

/** What a callback query carries besides its message. */
export interface PressExtra {
  readonly message_id: number;
  readonly data: string;
}

export interface Updates {
  openQueue(bot: number): Promise<void>;
  /** Forwards a partition's outbox soon; errors are left to the sweep. */
  forward(partition: number): void;
  /** Forwards a partition's whole outbox now. */
  forwardAll(partition: number): Promise<void>;
  /** Removes what waits; returns how much. */
  dropPending(bot: number): Promise<number>;
  info(bot: number): Promise<{ readonly pending: number; readonly mask: number }>;
  /** Errors: `chat_not_found`, `message_not_found`, `button_not_found`, `not_chat_member`. */
  press(chat: ChatRef, user: Profile, messageId: number, data: string): Promise<string>;
  /** Error: `query_too_old`. */
  answer(bot: number, queryId: string, answer: Readonly<Record<string, unknown>>): Promise<void>;
}

const partitionDigits = 3;

/** Reads a stream entry of a queue or an outbox: its id and its fields by name. */
export function readEntry(raw: unknown): {
  readonly id: string;
  readonly fields: Readonly<Record<string, Buffer>>;
} {
  const [id, list] = raw as [Buffer, Buffer[]];
  const fields: Record<string, Buffer> = {};
  for (let i = 0; i < list.length; i += 2) fields[String(list[i])] = list[i + 1] as Buffer;
  return { id: String(id), fields };
}

export function readUpdate(raw: unknown): UpdateEntry {
  const { id, fields } = readEntry(raw);
  const field = (name: string) => fields[name] as Buffer;
  const chat = parseChat(String(field('c')));
  const name = String(field('m'));
  const from = unpack<Profile>(field('f'));
  const press = field('x').length > 0 ? unpack<PressExtra>(field('x')) : null;
  return {
    updateId: Number(id.slice(0, id.indexOf('-'))),
    kind: String(field('k')) as UpdateKind,
    id: name,
    message: storedMessage(
      chat,
      press?.message_id ?? Number(name),
      field('r'),
      field('p').length > 0 ? field('p') : field('f'),
      field('y'),
    ),
    from,
    press,
  };
}

export function createUpdates(
  context: StoreContext,
  readBack: ReadBack,
  onForwardError: (error: unknown) => void,
): Updates {
  const { scripts, keys } = context;
  const partitionOf = (id: number) => keys.partitions.of(id);
  const queueAt = (bot: number) => ({ state: keys.queueState(bot), queue: keys.queue(bot) });

  async function openQueue(bot: number): Promise<void> {
    const partition = partitionOf(bot);
    await scripts.call(
      'updates/open_queue',
      partition,
      { meta: keys.meta(partition), state: keys.queueState(bot) },
      { start: randomInt(limits.update_id_start_min, limits.update_id_start_max), mask: defaultUpdateMask },
    );
  }

  /** Hands updates of one source partition to one bot. They enter its queue once, whoever hands them over. */
  async function handOver(
    bot: number,
    source: number,
    updates: ReadonlyArray<string | Buffer>,
  ): Promise<void> {
    const partition = partitionOf(bot);
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const result = await scripts.call(
        'updates/accept_forwarded',
        partition,
        {
          meta: keys.meta(partition),
          journal: keys.journal(partition),
          ...queueAt(bot),
          marks: keys.queueMarks(bot),
          channel: keys.botChannel(bot),
        },
        { bot: String(bot), source: String(source), updates },
      );
      if (result.status === 'ok') return;
      await openQueue(bot);
    }
    fail('unavailable', { retry_after: 1 });
  }

  /** Takes the whole prefix that waits, in order; true when more than a batch waits. */
  async function forwardBatch(source: number): Promise<boolean> {
    const outbox = keys.outbox(source);
    const { rows } = await scripts.call(
      'updates/read_outbox',
      source,
      { outbox },
      { limit: limits.outbox_batch_entries_max },
    );
    const entries = (rows as unknown[]).map(readEntry);
    const last = entries.at(-1);
    if (!last) return false;
    const byBot = new Map<number, Array<string | Buffer>>();
    for (const { id, fields } of entries) {
      const field = (name: string) => fields[name] as Buffer;
      const kind = String(field('k')) as UpdateKind;
      const version = id.slice(0, id.indexOf('-'));
      const update = [
        version,
        String(kindBit(kind)),
        kind,
        ...['c', 'm', 'r', 'f', 'p', 'y', 'x'].map(field),
      ];
      for (const bot of String(field('b')).split(',').map(Number)) {
        const list = byBot.get(bot) ?? [];
        byBot.set(bot, list);
        list.push(...update);
      }
    }
    await Promise.all([...byBot].map(([bot, updates]) => handOver(bot, source, updates)));
    await scripts.call('updates/trim_outbox', source, { outbox }, { last: last.id });
    return entries.length === limits.outbox_batch_entries_max;
  }

  async function forwardAll(source: number): Promise<void> {
    while (await forwardBatch(source)) {
      // Each round takes the next batch.
    }
  }

  /** Per partition: running, and whether something was added meanwhile. */
  const running = new Map<number, { again: boolean }>();

  async function run(partition: number): Promise<void> {
    const present = running.get(partition);
    if (present) {
      present.again = true;
      return;
    }
    const state = { again: false };
    running.set(partition, state);
    try {
      do {
        state.again = false;
        await forwardAll(partition);
      } while (state.again);
    } finally {
      running.delete(partition);
    }
  }

  async function press(chat: ChatRef, user: Profile, messageId: number, data: string): Promise<string> {
    const partition = partitionOf(chat.id);
    const request = uniqueText();
    const chatKey = keys.chat(chat);
    const message = keys.message(chat, messageId);
    const extra: PressExtra = { message_id: messageId, data };
    for (let attempt = 0; attempt < fillAttemptsMax; attempt++) {
      const at = {
        meta: keys.meta(partition),
        journal: keys.journal(partition),
        chat: chatKey,
        ticket: keys.ticket(chatKey),
        message,
        message_ticket: keys.ticket(message),
        request: keys.request(partition, request),
        query: keys.callbackQueries(partition),
      };
      const digits = String(partition).padStart(partitionDigits, '0');
      const args = {
        press: pack([chatText(chat), String(messageId), String(user.id), data, digits, uniqueText()]),
        from: pack(user),
        extra: pack(extra),
      };
      const member = keys.member(chat.id, user.id);
      const result = isDirect(chat)
        ? await scripts.call(
            'updates/press_direct',
            partition,
            {
              ...at,
              queue_state: keys.queueState(chat.id),
              queue: keys.queue(chat.id),
              bot_channel: keys.botChannel(chat.id),
            },
            args,
          )
        : await scripts.call(
            'updates/press_shared',
            partition,
            { ...at, outbox: keys.outbox(partition), member, member_ticket: keys.ticket(member) },
            args,
          );
      switch (result.status) {
        case 'ok':
          if ('forward' in result && result.forward) void run(partition).catch(onForwardError);
          return result.query_id;
        case 'chat_missing':
          await readBack.chat(chat, result.ticket, false);
          break;
        case 'message_missing':
          if (!(await readBack.message(chat, messageId, result.ticket))) fail('message_not_found');
          break;
        case 'member_missing':
          await readBack.member(chat, user.id);
          break;
        case 'queue_missing':
          await openQueue(chat.id);
          break;
        case 'not_member':
          return fail('not_chat_member');
        case 'not_found':
          return fail('message_not_found');
        case 'no_button':
          return fail('button_not_found');
        case 'outbox_full':
          return fail('too_many_requests', { retry_after: 1 });
      }
    }
    return fail('unavailable', { retry_after: 1 });
  }

  return {
    openQueue,
    forwardAll: run,
    forward(partition) {
      run(partition).catch(onForwardError);
    },
    async dropPending(bot) {
      return (await scripts.call('updates/drop_pending', partitionOf(bot), queueAt(bot), {})).dropped;
    },
    async info(bot) {
      const { pending, mask } = await scripts.call('updates/info', partitionOf(bot), queueAt(bot), {});
      return { pending, mask: mask ?? defaultUpdateMask };
    },
    press,
    async answer(bot, queryId, answer) {
      const partition = Number(queryId.slice(-partitionDigits));
      if (!/^\d{4,19}$/.test(queryId) || partition >= keys.partitions.count) fail('query_too_old');
      const result = await scripts.call(
        'updates/answer_query',
        partition,
        {
          meta: keys.meta(partition),
          query: keys.callbackQueries(partition) + queryId,
          request: keys.request(partition, uniqueText()),
          chat: keys.chatRoot(partition),
          changes: keys.changesRoot(partition),
          channel: keys.chatChannelRoot(partition),
        },
        { id: queryId, bot: String(bot), answer: pack(answer) },
      );
      if (result.status === 'too_old') fail('query_too_old');
    },
  };
}
