/**
 * Fills one batch from the beginnings of the journals. Each journal contributes an equal share. The batch is limited in
 * entries and in bytes.
 */

import type { RedisServers } from '../redis/connection.js';
import { unavailable } from '../redis/waiting.js';
import type { Keys } from '../store/core/keys.js';
import type { JournalEntry, JournalPrefix } from './batch.js';
import { journalLimits as limits } from './limits.js';

type RawEntry = readonly [id: Buffer, fields: readonly Buffer[]];

const empty = Buffer.alloc(0);

const zero = 48;
const minus = 45;

/** Returns the version in an entry id of the form `version-bytes`. */
function versionOf(id: Buffer): number {
  let version = 0;
  for (let i = 0; i < id.length && id[i] !== minus; i++) version = version * 10 + ((id[i] as number) - zero);
  return version;
}

const isNamed = (field: Buffer | undefined, letter: number): boolean =>
  field !== undefined && field.length === 1 && field[0] === letter;
const [letterK, letterI, letterS] = [...Buffer.from('kis')] as [number, number, number];

/** Decodes an entry. A malformed entry keeps its version, but its entity is empty, so that it goes to quarantine. */
function decode(partition: number, [id, fields]: RawEntry): JournalEntry {
  const [k, name, i, image, s, state] = fields;
  const shaped =
    isNamed(k, letterK) &&
    isNamed(i, letterI) &&
    (fields.length === 4 || (fields.length === 6 && isNamed(s, letterS)));
  return {
    partition,
    version: versionOf(id),
    entity: shaped ? (name as Buffer).toString() : '',
    image: image ?? empty,
    state: shaped && state !== undefined ? state.toString() : '',
  };
}

async function readFrom(
  servers: RedisServers,
  keys: Keys,
  partition: number,
  start: string,
  count: number,
): Promise<ReadonlyArray<readonly unknown[]>> {
  const node = servers.at(partition);
  if (node === null) throw unavailable();
  try {
    return await node.client.xrangeBuffer(keys.journal(partition), start, '+', 'COUNT', count);
  } catch (error) {
    // The slot of the journals is being migrated. Skips these journals; the next read asks the slot's new server.
    servers.redirect(node, (error as Error).message);
    throw error;
  }
}

export interface ReadResult {
  readonly prefixes: readonly JournalPrefix[];
  /**
   * The error of partitions that could not be read, for instance because their server is unavailable. Null if all
   * partitions were read.
   */
  readonly failure: Error | null;
  readonly ends: readonly number[];
  readonly full: boolean;
  readonly bytes: number;
}

/**
 * How many entries the first round of a batch requests in total, with at least one from each partition. The batch may
 * exceed its byte limit, because the sizes of the entries are not known yet in this round. A small number keeps the
 * excess small.
 */
const first_round_entries = 128;

const bytesOf = ({ image, entity }: JournalEntry): number => image.length + entity.length;

/**
 * Reads each journal from its start. If `after` contains a version for the partition, starts after this version
 * instead, because the caller is still writing the earlier entries. A batch ends at `entriesMax` or `bytesMax`,
 * whichever comes first.
 *
 * Reads in rounds. In a round, each partition contributes an equal share. The next round reads only the partitions that
 * have more entries. A round requests as many entries as would fit if each had twice the mean size so far.
 *
 * Throws the error of Redis if no partition can be read.
 */
export async function readPrefixes(
  servers: RedisServers,
  keys: Keys,
  partitions: readonly number[],
  after: ReadonlyMap<number, number>,
  entriesMax: number = limits.journal_batch_entries_max,
  bytesMax: number = limits.journal_batch_bytes_max,
): Promise<ReadResult> {
  const found = new Map<number, JournalEntry[]>();
  const ends: number[] = [];
  let entries = 0;
  let bytes = 0;
  let failure: Error | null = null;
  let readable = 0;

  async function readMore(partition: number, count: number): Promise<boolean> {
    const known = found.get(partition) ?? [];
    const last = known.at(-1)?.version ?? after.get(partition);
    const start = last === undefined ? '-' : `${last + 1}-0`;
    const raw = await readFrom(servers, keys, partition, start, count).catch((error: Error) => {
      failure = error;
      return null;
    });
    if (raw === null) return false;
    readable++;
    for (const each of raw) {
      const entry = decode(partition, each as unknown as RawEntry);
      known.push(entry);
      bytes += bytesOf(entry);
    }
    if (raw.length > 0) found.set(partition, known);
    entries += raw.length;
    if (raw.length < count) ends.push(partition);
    return raw.length === count;
  }

  function roundMax(): number {
    const fitting = entries === 0 ? first_round_entries : (bytesMax - bytes) / ((2 * bytes) / entries);
    return Math.min(entriesMax - entries, Math.floor(fitting));
  }

  let open = [...partitions];
  while (open.length > 0 && entries < entriesMax && bytes < bytesMax) {
    const share = Math.max(1, Math.floor(roundMax() / open.length));
    const more = await Promise.all(open.map((partition) => readMore(partition, share)));
    open = open.filter((_, i) => more[i]);
  }
  if (failure !== null && readable === 0) throw failure;
  const atEnd = new Set(ends);
  const prefixes = [...found].map(([partition, of]) => ({
    partition,
    entries: of,
    last: (of.at(-1) as JournalEntry).version,
    whole: atEnd.has(partition),
  }));
  return { prefixes, ends, failure, full: open.length > 0, bytes };
}
