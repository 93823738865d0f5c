/**
 * Replays a run of the model `incarnations` on the real scripts. The statements of the flusher and of recovery run on a
 * real PostgreSQL. The record of the model is replayed as a direct chat, and each change of the record as a new
 * message.
 */
import type { Redis } from 'ioredis';
import { expect } from 'vitest';
import { raiseIncarnations } from '../../src/journal/recovery.js';
import { type ReadResult, readPrefixes } from '../../src/journal/source.js';
import { prepareBatch, writeBatch } from '../../src/journal/write.js';
import { limits } from '../../src/limits.js';
import { isOlderFlush, type Pool, statement } from '../../src/postgres/pool.js';
import type { RedisServers } from '../../src/redis/connection.js';
import { pack } from '../../src/store/core/codec.js';
import { chatText } from '../../src/store/core/keys.js';
import { tail } from '../lua/message_world.js';
import { direct, keys, partitionOf } from '../lua/world.js';
import { numbers, Replay } from './replay.js';
import type { Step } from './spin.js';

const partition = partitionOf(direct);
const chat = keys.chat(direct);
/** The value of the constant PER_INCARNATION in the model. */
const perIncarnation = 4;

const readRows = statement(
  'test_rows',
  `select coalesce((select incarnation from partitions where partition = $1), 0) as incarnation,
     coalesce((select flushed_version from partitions where partition = $1), 0) as flushed,
     s.last_message_id as id, s.version, s.incarnation as under
   from (values (1)) one left join chat_sequences s on s.chat_id = $2 and s.user_id = $3`,
);

interface Rows {
  readonly incarnation: number;
  readonly flushed: number;
  readonly id: number | null;
  readonly version: number | null;
  readonly under: number | null;
}

/** Converts a version of the model to the real version. */
const real = (version: number) =>
  Math.floor(version / perIncarnation) * limits.versions_per_incarnation + (version % perIncarnation);

export class IncarnationReplay {
  readonly #replay: Replay;
  readonly #pool: Pool;
  /**
   * Maps each message id of the model to the real message id. The ids differ, because Petrel skips more ids than the
   * model when the incarnation is raised.
   */
  readonly #ids = new Map([[0, 0]]);
  /** The last message id of the model's record, and the incarnation under which the record is stored. */
  #last = { id: 0, under: 1 };
  readonly #batches = new Map<number, ReadResult>();

  constructor(client: Redis, pool: Pool) {
    this.#replay = new Replay(client, partition);
    this.#pool = pool;
  }

  async step(step: Step): Promise<void> {
    switch (step.name) {
      case 'fill':
        return this.#fill(numbers(step, 'id', 'idunder'));
      case 'append':
        return this.#append(numbers(step, 'version', 'id'));
      case 'read':
        return this.#read(numbers(step, 'flusher', 'version'));
      case 'commit':
        return this.#commit(numbers(step, 'flusher', 'known', 'refused'));
      case 'trim':
        return this.#trim(numbers(step, 'version'));
      case 'forget':
        return this.#forget(numbers(step, 'for'));
      case 'raise':
        return this.#raise(numbers(step, 'seen', 'highest', 'lacks', 'raised'));
      case 'open':
        return this.#open(numbers(step, 'for', 'incarnation', 'moved', 'behind', 'opened'));
      case 'expire':
        await this.#replay.client.del(chat);
        return;
      case 'sync':
        return this.#replay.sync();
      case 'crash':
        return this.#replay.crash();
      case 'state':
        return this.#compare(numbers(step, 'openfor', 'counter', 'version', 'id', 'idunder', 'journal'));
      case 'rows':
        return this.#compareRows(numbers(step, 'incarnation', 'flushed', 'version', 'id', 'idunder'));
      default:
        throw new Error(`unknown step ${step.name}`);
    }
  }

  async #rows(): Promise<Rows> {
    const { rows } = await this.#pool.query<Rows>(readRows, [partition, direct.id, direct.user]);
    return rows[0] as Rows;
  }

  /** Acts like a node that has loaded the chat, and stores the chat with `chats/fill`. */
  async #fill({ id, idunder }: { id: number; idunder: number }): Promise<void> {
    const { client, incarnation } = this.#replay;
    const ticket = keys.ticket(chat);
    const { id: last, version, under } = await this.#rows();
    await client.set(ticket, 'T');
    const sequence = [last ?? 0, version ?? 0, under ?? 1, 0, '', ''].map(String);
    const args = {
      ...{ token: `${incarnation} T`, sequence: pack(sequence), profile: pack({ id: 1, n: 'P' }) },
      ...{ profile_version: '1', kind: 'direct', bots: '', ttl_ms: '600000' },
    };
    const at = { meta: keys.meta(partition), chat, ticket, changes: keys.changes(direct) };
    expect(await this.#replay.call('chats/fill', at, args)).toEqual(['ok', 1]);
    this.#last = { id, under: idunder };
  }

  async #append({ version, id }: { version: number; id: number }): Promise<void> {
    const { client, incarnation } = this.#replay;
    const at = {
      ...{ meta: keys.meta(partition), journal: keys.journal(partition), chat },
      ...{ request: keys.request(partition, `r${version}`), ticket: keys.ticket(chat) },
      ...{ changes: keys.changes(direct), channel: keys.chatChannel(direct) },
      ...{ message: keys.messages(direct), sibling: keys.messages(direct) },
    };
    // Marks the chat as stored under the current incarnation, as a node does before it sends a message to an older
    // chat.
    await client.hset(chat, 'pi', incarnation);
    const args = { chat: chatText(direct), keep: '', tails: [tail], reply_to: '', token: 'T' };
    const raises = Math.floor(version / perIncarnation) - this.#last.under;
    const before = this.#ids.get(this.#last.id) as number;
    const expected = before + 1 + raises * limits.incarnation_sequence_skip;
    const [status, first] = await this.#replay.call('messages/send_to_user', at, args);
    expect([status, Number(first)]).toEqual(['ok', expected]);
    this.#ids.set(id, expected);
  }

  async #read({ flusher, version }: { flusher: number; version: number }): Promise<void> {
    const { client } = this.#replay;
    const servers = { at: () => ({ client }), redirect: () => null } as unknown as RedisServers;
    const read = await readPrefixes(servers, keys, [partition], new Map());
    expect([read.failure, read.prefixes[0]?.last ?? 0]).toEqual([null, real(version)]);
    this.#batches.set(flusher, read);
  }

  async #commit({ flusher, known, refused }: { flusher: number; known: number; refused: number }) {
    const { prefixes } = this.#batches.get(flusher) as ReadResult;
    const batch = prepareBatch(prefixes, new Map([[partition, known]]));
    // Skips an empty batch, as the program does. A batch is empty if Redis has crashed between the two reads of a
    // flusher.
    if (prefixes.length === 0) return;
    const written = writeBatch(this.#pool, batch, () => expect.unreachable());
    expect(
      await written.then(
        () => 0,
        (error) => (isOlderFlush(error) ? 1 : Promise.reject(error)),
      ),
    ).toBe(refused);
  }

  async #trim({ version }: { version: number }): Promise<void> {
    const at = { meta: keys.meta(partition), journal: keys.journal(partition), entities: [] };
    const args = { after: `${real(version) + 1}-0`, hot_ms: '60000', records: '0', brief: '0', versions: [] };
    expect((await this.#replay.call('journal/settle', at, args))[0]).toBe('ok');
  }

  async #forget({ for: expected }: { for: number }): Promise<void> {
    const at = { meta: keys.meta(partition), lease: keys.forgetting(partition), entities: [chat] };
    const args = { expected: `run-${expected}`, owner: 'node' };
    expect(await this.#replay.call('partition/forget', at, args)).toEqual(['ok']);
  }

  async #raise(of: { seen: number; highest: number; lacks: number; raised: number }): Promise<void> {
    const highest = real(of.highest);
    const { rows } = await this.#pool.transaction((tx) =>
      tx.query<{ incarnation: number }>(raiseIncarnations, [
        [partition],
        [Math.floor(highest / limits.versions_per_incarnation)],
        [of.seen],
        `run-${this.#replay.runs}`,
        [of.lacks ? Number.MAX_SAFE_INTEGER : highest],
      ]),
    );
    expect(rows[0]?.incarnation ?? 0).toBe(of.raised);
  }

  async #open(of: { for: number; incarnation: number; moved: number; behind: number; opened: number }) {
    const answer = await this.#replay.open(partition, of.incarnation, `run-${of.for}`);
    if (of.moved) expect(answer).toEqual(['moved']);
    else if (of.behind) expect(answer).toEqual(['behind', `${real(of.behind)}`]);
    else expect(answer).toEqual(['ok', of.opened]);
    if (of.opened) this.#replay.incarnation = of.incarnation;
  }

  async #compare(state: {
    openfor: number;
    counter: number;
    version: number;
    id: number;
    idunder: number;
    journal: number;
  }): Promise<void> {
    const { client } = this.#replay;
    const [run, counter] = await client.hmget(keys.meta(partition), 'run', 'ver');
    const [version, id, under] = await client.hmget(chat, 'v', 's', 'i');
    const [newest] = await client.xrevrange(keys.journal(partition), '+', '-', 'COUNT', 1);
    expect({
      openfor: Number(run?.slice('run-'.length) ?? 0),
      counter: Number(counter),
      ...{ version: Number(version), id: Number(id), idunder: Number(under) },
      journal: Number(newest?.[0].split('-')[0] ?? 0),
    }).toEqual({
      openfor: state.openfor,
      counter: real(state.counter),
      ...{ version: real(state.version), id: this.#ids.get(state.id), idunder: state.idunder },
      journal: real(state.journal),
    });
    if (state.version > 0) this.#last = { id: state.id, under: state.idunder };
  }

  async #compareRows(state: {
    incarnation: number;
    flushed: number;
    version: number;
    id: number;
    idunder: number;
  }): Promise<void> {
    const { incarnation, flushed, id, version, under } = await this.#rows();
    expect({ incarnation, flushed, id: id ?? 0, version: version ?? 0, under: under ?? 1 }).toEqual({
      ...{ incarnation: state.incarnation, flushed: real(state.flushed) },
      ...{ id: this.#ids.get(state.id), version: real(state.version), under: state.idunder },
    });
  }
}
