/**
 * Manages copies in Redis of control rows that are found by a text, such as a username. The partition of a copy is
 * computed from the text.
 */
import { clusterSlot } from '../../redis/slots.js';
import { pack, unpack } from './codec.js';
import type { StoreContext } from './context.js';

/**
 * The id of a text. If a text has no id, Redis stores the id 0 for it, so that repeated lookups do not query Postgres.
 * The version is 0 if the text has never had an id.
 */
export interface TextRow {
  readonly version: number;
  readonly id: number;
}

const elements = 3;

export function createTextCopies(
  { scripts, keys, uniqueText, hotTtlMs }: StoreContext,
  keyOf: (partition: number, text: string) => string,
  load: (text: string) => Promise<TextRow>,
) {
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
      // Passes a channel only because the script requires one. Nobody subscribes to this channel.
      { ...place.keys, channel: `${place.keys.record}:changed` },
      { token: ticket, refresh, version, fields: pack(id), count: elements, ttl_ms: hotTtlMs },
    );
    return id;
  }

  const find = (text: string) => {
    const place = at(text);
    const args = { token: uniqueText(), ttl_ms: hotTtlMs };
    return scripts.call('control/read', place.partition, place.keys, args);
  };

  return {
    async read(text: string): Promise<number> {
      const found = await find(text);
      if (found.status !== 'ok')
        return scripts.isFull(at(text).partition) ? (await load(text)).id : write(text, found.ticket, false);
      return unpack<number[]>(found.bytes)[elements - 1] ?? 0;
    },
    async refresh(text: string) {
      const found = await find(text);
      await write(text, found.status === 'ok' ? '' : found.ticket, true);
    },
  };
}
