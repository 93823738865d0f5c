/** Decodes the hints on a bot's channel. A hint about a new update may contain a copy of the update. */

export type Row = [id: Buffer, fields: Buffer[]];

/** A copy of an update, as encoded by `update_hint` in `lua/lib/queue.lua`. */
export interface UpdateCopy {
  readonly hook: number;
  readonly id: number;
  /** The creation time in ms, by the clock of Redis. */
  readonly made: number;
  readonly row: Row;
}

export interface Hint {
  readonly changed: boolean;
  readonly copy: UpdateCopy | null;
}

const changeMark = 'w'.charCodeAt(0);
const names = [...'ktcmrfpyxu'].map((name) => Buffer.from(name));
/**
 * The number of values in a hint about a new update: the version of the settings, the queue id, and one value for each
 * field.
 */
const valuesCount = 2 + names.length;
const lengthBytes = 2;
const headBytes = 1 + valuesCount * lengthBytes;

function readCopy(hint: Buffer): UpdateCopy | null {
  if (hint.length < headBytes) return null;
  const values: Buffer[] = [];
  let at = headBytes;
  for (let i = 0; i < valuesCount; i++) {
    const length = hint.readUInt16BE(1 + i * lengthBytes);
    values.push(hint.subarray(at, at + length));
    at += length;
  }
  if (at !== hint.length) return null;
  const [hook, id, ...stored] = values as [Buffer, Buffer, ...Buffer[]];
  const fields = stored.flatMap((value, i) => [names[i] as Buffer, value]);
  // Drops the field for the original id if it is empty. Only replayed updates have an original id.
  if (stored.at(-1)?.length === 0) fields.splice(-2);
  return {
    hook: Number(hook),
    id: Number.parseInt(String(id), 10),
    made: Number(stored[1]),
    row: [id, fields],
  };
}

/** Decodes a hint. `copy` is null if the hint contains no copy, or a copy in another format. */
export const readHint = (hint: Buffer): Hint => ({
  changed: hint.length === 1 && hint[0] === changeMark,
  copy: readCopy(hint),
});
