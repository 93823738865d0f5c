/**
 * Encodes an update for Postgres as a msgpack array of binaries, in which the names and values of the queue entry's
 * fields alternate.
 */
import type { RouteRows } from '../../postgres/webhooks/dead_updates.js';
import { pack, unpack } from '../core/codec.js';

export const packUpdate = (fields: readonly Buffer[]): Buffer => pack(fields);

export function unpackUpdate(record: Buffer): Readonly<Record<string, Buffer>> {
  const list = unpack<unknown>(record);
  if (!Array.isArray(list) || !list.every((each) => Buffer.isBuffer(each)))
    throw new Error('not an update record');
  const fields: Record<string, Buffer> = {};
  for (let i = 0; i < list.length; i += 2) fields[String(list[i])] = list[i + 1] as Buffer;
  return fields;
}

/** Packs bytes as a msgpack binary with a length of 32 bits, as `pack_bytes` in `lua/lib/queue.lua` does. */
function packLong(text: string): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(0xc6);
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, Buffer.from(text)]);
}

/**
 * Returns the bytes at the end of the record of every update of a route. The last field of such a record is `l`, the
 * slot of the route. Scripts pack dead letters, but `packUpdate` packs delivered updates, so the two end differently.
 */
export const recordEnds = (slot: number): Omit<RouteRows, 'since'> => ({
  dead: Buffer.concat(['l', String(slot)].map(packLong)),
  delivered: Buffer.concat(['l', String(slot)].map((text) => pack(Buffer.from(text)))),
});
