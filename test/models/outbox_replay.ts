/**
 * Replays a run of the model `outbox` on the real scripts. The message of the step `send update=n` causes update `n`.
 */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { kindBit } from '../../src/rules/update_kinds.js';
import { pack } from '../../src/store/core/codec.js';
import { chatText, sharedChat } from '../../src/store/core/keys.js';
import { tail } from '../lua/message_world.js';
import { keys, user } from '../lua/world.js';
import { numbers, Replay } from './replay.js';
import type { Step } from './spin.js';

const bots = [100_002, 100_003] as const;
const group = sharedChat(-100_700);
const source = keys.partitions.of(group.id);
const targets = bots.map((bot) => keys.partitions.of(bot));

interface Entry {
  /** The entry's id in the outbox: a version and a number of bytes. */
  readonly id: string;
  readonly fields: Readonly<Record<string, Buffer>>;
}

/** In a model, a set of updates is a number. Update n is bit n - 1 of this number. */
const setOf = (updates: readonly number[]) => updates.reduce((set, update) => set | (1 << (update - 1)), 0);
const versionOf = (id: string) => Number(id.split('-')[0]);

export class OutboxReplay {
  readonly #replay: Replay;
  /** The outbox entries, keyed by the number of the update. */
  readonly #entries = new Map<number, Entry>();

  constructor(client: Redis) {
    expect(new Set([source, ...targets]).size).toBe(3);
    this.#replay = new Replay(client, source, ...targets);
  }

  /**
   * Opens the partitions and the queues before the run. If they were opened later, a crash could lose them, but the
   * model never loses a queue.
   */
  async begin(): Promise<void> {
    await this.#replay.recover();
    await this.#openQueues();
  }

  async step(step: Step): Promise<void> {
    if (await this.#replay.environment(step)) {
      if (step.name === 'recover') await this.#openQueues();
      return;
    }
    switch (step.name) {
      case 'send':
        return this.#send(numbers(step, 'update'));
      case 'read':
        return this.#read(numbers(step, 'after', 'batch', 'incarnation'));
      case 'accept':
        return this.#handOver('ok', numbers(step, 'bot', 'batch', 'under'));
      case 'refuse':
        return this.#handOver('moved', numbers(step, 'bot', 'batch', 'under'));
      case 'trim':
        return this.#trim(numbers(step, 'last', 'under', 'moved'));
      case 'state':
        return this.#compare(numbers(step, 'outbox', 'first', 'second', 'firstmark', 'secondmark'));
      default:
        throw new Error(`unknown step ${step.name}`);
    }
  }

  async #openQueues(): Promise<void> {
    const known = String(this.#replay.incarnation);
    for (const [i, bot] of bots.entries()) {
      const at = {
        meta: keys.meta(targets[i] as number),
        state: keys.queueState(bot),
        routes: keys.routes(bot),
      };
      const args = { known, start: '1', mask: '63', hook: '', set: '', routes: '' };
      expect((await this.#replay.call('updates/open_queue', at, args))[0]).toBe('ok');
    }
  }

  async #send({ update }: { update: number }): Promise<void> {
    const { client, incarnation } = this.#replay;
    const [chat, member] = [keys.chat(group), keys.member(group.id, user)];
    const place = { meta: keys.meta(source), journal: keys.journal(source), outbox: keys.outbox(source) };
    // Stores the copies of the chat and of the member in Redis. A node that loads them under the current incarnation
    // would store the same copies.
    const copy = { p: pack({ id: group.id, n: 'G' }), pv: 1, t: 'group', b: bots.join(), pi: incarnation };
    await client.hset(chat, copy);
    await client.hsetnx(chat, 's', '0');
    await client.hsetnx(chat, 'i', incarnation);
    await client.set(member, pack([1, incarnation, 'member', {}, false]));
    const at = {
      ...{ ...place, chat, ticket: keys.ticket(chat), request: keys.request(source, `r${update}`) },
      ...{ changes: keys.changes(group), channel: keys.chatChannel(group), message: keys.messages(group) },
      ...{ member, member_ticket: keys.ticket(member), post: keys.postRoot(source) },
      sibling: keys.messages(group),
    };
    const args = {
      ...{ chat: chatText(group), keep: '', tails: [tail], sender: `${user}`, reply_to: '', token: 'T' },
      ...{ from: pack({ id: user }), partition: `${source}` },
    };
    const [status, ...values] = await this.#replay.call('messages/send_shared', at, args);
    expect([status, values[4]]).toEqual(['ok', 1]);
    const [newest] = await client.xrevrangeBuffer(keys.outbox(source), '+', '-', 'COUNT', 1);
    const [id, flat] = newest as [Buffer, Buffer[]];
    const fields = Object.fromEntries(
      flat.flatMap((name, i) => (i % 2 === 0 ? [[String(name), flat[i + 1] as Buffer]] : [])),
    );
    this.#entries.set(update, { id: String(id), fields });
  }

  #entry(update: number): Entry {
    return this.#entries.get(update) as Entry;
  }

  /** Returns the numbers of the updates in a set, in order. */
  #updatesIn(set: number): number[] {
    return [...this.#entries.keys()].sort((a, b) => a - b).filter((update) => set & (1 << (update - 1)));
  }

  /** Returns the updates of the outbox entries with these ids, as a set. */
  #setOfIds(ids: readonly string[]): number {
    return setOf([...this.#entries].flatMap(([update, { id }]) => (ids.includes(id) ? [update] : [])));
  }

  async #read({ after, batch, incarnation }: { after: number; batch: number; incarnation: number }) {
    const at = { meta: keys.meta(source), outbox: keys.outbox(source) };
    const args = { after: after === 0 ? '' : this.#entry(after).id, limit: '100' };
    const [status, rows, ...rest] = await this.#replay.call('updates/read_outbox', at, args);
    const ids = (rows as Array<[Buffer, unknown]>).map(([id]) => String(id));
    expect([status, this.#setOfIds(ids), ...rest]).toEqual(['ok', batch, incarnation, 0]);
  }

  async #handOver(
    expected: 'ok' | 'moved',
    { bot: index, batch, under }: { bot: number; batch: number; under: number },
  ): Promise<void> {
    const bot = bots[index] as number;
    const partition = targets[index] as number;
    const at = {
      ...{ meta: keys.meta(partition), journal: keys.journal(partition), state: keys.queueState(bot) },
      ...{ queue: keys.queue(bot), marks: keys.queueMarks(bot), channel: keys.botChannel(bot) },
      due: keys.webhooksDue(partition),
    };
    const updates = this.#updatesIn(batch).flatMap((update) => {
      const { id, fields } = this.#entry(update);
      const values = ['c', 'm', 'r', 'f', 'p', 'y', 'x'].map((name) => fields[name] as Buffer);
      return [`${versionOf(id)}`, `${kindBit('message')}`, 'message', ...values];
    });
    // The n-th start of Redis has the incarnation n.
    const args = { bot: `${bot}`, source: `${source}`, expected: `run-${under}`, updates };
    expect((await this.#replay.call('updates/accept_forwarded', at, args))[0]).toBe(expected);
  }

  async #trim({ last, under, moved }: { last: number; under: number; moved: number }): Promise<void> {
    const at = { meta: keys.meta(source), outbox: keys.outbox(source) };
    const args = { last: this.#entry(last).id, incarnation: `${under}` };
    const [status] = await this.#replay.call('updates/trim_outbox', at, args);
    expect(status).toBe(moved ? 'moved' : 'ok');
  }

  async #compare(state: {
    outbox: number;
    first: number;
    second: number;
    firstmark: number;
    secondmark: number;
  }): Promise<void> {
    const { client } = this.#replay;
    const outbox = await client.xrange(keys.outbox(source), '-', '+');
    const queues = await Promise.all(
      bots.map(async (bot) => {
        const entries = await client.xrangeBuffer(keys.queue(bot), '-', '+');
        const records = entries.map(([, fields]) => fields[fields.findIndex((f) => String(f) === 'r') + 1]);
        // Counts an update twice if its queue contains it twice.
        return [...this.#entries].reduce((set, [update, { fields }]) => {
          const times = records.filter((record) => record?.equals(fields.r as Buffer)).length;
          return set + times * (1 << (update - 1));
        }, 0);
      }),
    );
    const marks = await Promise.all(
      bots.map(async (bot) => {
        const mark = Number(await client.hget(keys.queueMarks(bot), `${source}`));
        return [...this.#entries].find(([, { id }]) => versionOf(id) === mark)?.[0] ?? 0;
      }),
    );
    expect({
      ...{ outbox: this.#setOfIds(outbox.map(([id]) => id)), first: queues[0], second: queues[1] },
      ...{ firstmark: marks[0], secondmark: marks[1] },
    }).toEqual(state);
  }
}
