/** An update as Postgres keeps it: the fields of its queue entry, in turn name and value, in one msgpack array of bytes. */
import { pack, unpack } from '../core/codec.js';

export const packUpdate = (fields: readonly Buffer[]): Buffer => pack(fields);

/** Fields by name. Throws for bytes that are no such array. */
export function unpackUpdate(record: Buffer): Readonly<Record<string, Buffer>> {
  const list = unpack<unknown>(record);
  if (!Array.isArray(list) || !list.every((each) => Buffer.isBuffer(each)))
    throw new Error('not a record of an update');
  const fields: Record<string, Buffer> = {};
  for (let i = 0; i < list.length; i += 2) fields[String(list[i])] = list[i + 1] as Buffer;
  return fields;
}
