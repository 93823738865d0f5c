/** Copies of control rows that are looked up by a text. The text determines the partition. */
import { clusterSlot } from '../../redis/slots.js';
import { pack, unpack } from './codec.js';
import { type StoreContext, uniqueText } from './context.js';

/**
 * The id that a text resolves to, or 0. Texts that resolve to nothing are stored too, so that repeated lookups do not
 * query Postgres. Their version is 0 if they never resolved to anything.
 */
export interface TextRow {
  readonly version: number;
  readonly id: number;
}

export interface TextCopies {
  /** Reads the id that a text resolves to; 0 if it resolves to nothing. */
  read(text: string): Promise<number>;
  /** Replaces an older copy by the current row. */
  refresh(text: string): Promise<void>;
}

/** Number of elements in the stored array: version, incarnation and id. */
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
      // The channel key is required, although nobody subscribes to this channel.
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
