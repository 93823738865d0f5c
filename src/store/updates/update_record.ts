/**
 * Encodes an update for Postgres as one msgpack array of binaries. Names and values of the queue entry's fields
 * alternate in it.
 */
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
