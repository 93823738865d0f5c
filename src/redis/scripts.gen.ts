/** Generated from the headers below lua/ by `npm run generate`. Do not edit. */

export interface Scripts {
  /** Shows that a flusher lives, or that it leaves, and names those that live. */
  'journal/heartbeat': {
    keys: { flushers: string };
    args: { id: string; stale_ms: number | string; leaving: boolean };
    result:
      | { status: 'ok'; live: string[] };
  };
  /** Takes or renews the lease under which a flusher reads a journal. */
  'journal/lease': {
    keys: { lease: string };
    args: { owner: string; ms: number | string };
    result:
      | { status: 'ok' }
      | { status: 'taken' };
  };
  /** Gives a flusher's lease back, if it still holds it. */
  'journal/release': {
    keys: { lease: string };
    args: { owner: string };
    result:
      | { status: 'ok' };
  };
  /** Removes flushed entries from the journal and lets the entities they left in Postgres expire. */
  'journal/settle': {
    keys: { journal: string; entities: readonly string[] };
    args: { after: string; hot_ms: number | string; records: number | string; versions: readonly (number | string)[] };
    result:
      | { status: 'ok'; length: number; expiring: number };
  };
  /** Tells how far a partition's journal has grown and under whom versions are handed out. */
  'journal/state': {
    keys: { meta: string; journal: string };
    args: {  };
    result:
      | { status: 'ok'; length: number; first: number | null; version: number; run: string | null; high_water: number };
  };
  /** Opens a partition for the Redis behind this connection under a raised incarnation, or says what to exceed. */
  'partition/recover': {
    keys: { meta: string; journal: string };
    args: { expected: string; incarnation: number | string; high_water: number | string };
    result:
      | { status: 'ok' }
      | { status: 'behind'; incarnation: number }
      | { status: 'moved' };
  };
}

export type ScriptName = keyof Scripts;
