/**
 * An update as Postgres keeps it: the fields of its queue entry, in turn name and value, in one msgpack array. Scripts write the
 * values as strings, whatever bytes they are: a decoder that takes strings for UTF-8 would spoil them.
 */
import { pack } from './codec.js';

export const packUpdate = (fields: readonly Buffer[]): Buffer => pack(fields);

/** Fields by name. Throws for bytes that are no such array. */
export function unpackUpdate(record: Buffer): Readonly<Record<string, Buffer>> {
  let at = 0;
  const take = (bytes: number) => {
    at += bytes;
    return record.readUIntBE(at - bytes, bytes);
  };
  const lengthBytes: Readonly<Record<number, number>> = {
    ...{ 217: 1, 218: 2, 219: 4 },
    ...{ 196: 1, 197: 2, 198: 4 },
  };
  function takeText(): Buffer {
    const head = take(1);
    const wide = lengthBytes[head];
    if (wide === undefined && (head & 0xe0) !== 0xa0) throw new Error('not a record of an update');
    const length = wide === undefined ? head & 0x1f : take(wide);
    at += length;
    if (at > record.length) throw new Error('not a record of an update');
    return record.subarray(at - length, at);
  }
  const head = take(1);
  const count = head === 0xdc ? take(2) : head & 0x0f;
  if (head !== 0xdc && (head & 0xf0) !== 0x90) throw new Error('not a record of an update');
  const fields: Record<string, Buffer> = {};
  for (let i = 0; i < count; i += 2) fields[String(takeText())] = takeText();
  return fields;
}
