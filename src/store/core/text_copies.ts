/** Copies of control rows that are found by a text: in a partition that follows from it. */
import { clusterSlot } from '../../redis/slots.js';
import { pack, unpack } from './codec.js';
import { type StoreContext, uniqueText } from './context.js';

/** What a text stands for: an id, or 0. Texts that stand for nothing are kept too, so that asking again costs no round trip
 * to Postgres; their version is 0 if they never stood for anything. */
export interface TextRow {
  readonly version: number;
  readonly id: number;
}

export interface TextCopies {
  /** 0 for a text that stands for nothing. */
  read(text: string): Promise<number>;
  /** Copies the present row over an older copy. */
  refresh(text: string): Promise<void>;
}

/** Version, incarnation and the id. */
const elements = 3;

export function createTextCopies(
  { scripts, keys, hotTtlMs }: StoreContext,
  keyOf: (partition: number, text: string) => string,
  load: (text: string) => Promise<TextRow>,
): TextCopies {
  function at(text: string) {
    const partition = clusterSlot(text) % keys.partitions.count;
    const record = keyOf(partition, text);
    return { partition, keys: { meta: keys.meta(partition), record, ticket: keys.ticket(record) } };
  }

  async function write(text: string, ticket: string, refresh: boolean): Promise<number> {
    const { version, id } = await load(text);
    const place = at(text);
    await scripts.call(
      'control/write',
      place.partition,
      // Nobody listens for texts.
      { ...place.keys, channel: `${place.keys.record}:changed` },
      { token: ticket, refresh, version, fields: pack(id), count: elements, ttl_ms: hotTtlMs },
    );
    return id;
  }

  const find = (text: string) => {
    const place = at(text);
    return scripts.call('control/read', place.partition, place.keys, {
      token: uniqueText(),
      ttl_ms: hotTtlMs,
    });
  };

  return {
    async read(text) {
      const found = await find(text);
      if (found.status !== 'ok')
        return scripts.isFull(at(text).partition) ? (await load(text)).id : write(text, found.ticket, false);
      return unpack<number[]>(found.bytes)[elements - 1] ?? 0;
    },
    async refresh(text) {
      const found = await find(text);
      await write(text, found.status === 'ok' ? '' : found.ticket, true);
    },
  };
}
