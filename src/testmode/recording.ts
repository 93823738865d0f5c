/** Records what happens in worlds: people's actions, bots' calls and webhook deliveries. */
import { fail } from '../errors.js';
import { maskTokens } from '../rules/token.js';
import type { Time } from '../time.js';
import { testModeLimits as limits } from './limits.js';

export const entryKinds = ['action', 'call', 'delivery'] as const;

export interface NewEntry {
  readonly kind: (typeof entryKinds)[number];
  /** The name of the action or method, or the kind of the delivered update. */
  readonly name: string;
  /** The name of the person who acted. */
  readonly person?: string;
  readonly params: unknown;
  /** The HTTP status of the answer, or 0 if a webhook receiver did not answer. */
  readonly status: number;
  readonly answer: unknown;
  /**
   * Set if a fault replaced the answer: `answer lost` if the call or delivery still took effect, otherwise `not done`.
   */
  readonly fault?: 'answer lost' | 'not done';
  /**
   * Only for an action: the number of the latest entry when the action began. If the bot reacts before the action ends,
   * its entries come before the entry of the action.
   */
  readonly began_after?: number;
}

export interface Entry extends NewEntry {
  /** The entry's number. The entries of all worlds share one count. */
  readonly n: number;
  /** Unix time in ms, according to the test server's clock. */
  readonly at: number;
}

export interface EntryFilter {
  readonly kind?: Entry['kind'] | undefined;
  readonly name?: string | undefined;
  /** Skips the entries with this number and all lower numbers. */
  readonly after?: number | undefined;
}

interface Stored {
  readonly world: number;
  readonly entry: Entry;
  readonly bytes: number;
}

/** Returns a copy without tokens and secrets. A value that is too large becomes `{ omitted_bytes }`. */
function recordable(value: unknown): unknown {
  const text = JSON.stringify(value, (name, member) => (name === 'secret_token' ? '…' : member));
  if (text === undefined) return null;
  const bytes = Buffer.byteLength(text);
  if (bytes > limits.recorded_entry_bytes_max) return { omitted_bytes: bytes };
  return JSON.parse(maskTokens(text));
}

/** Keeps the latest entries of all worlds, up to `limits.recorded_entries_max` and `limits.recorded_bytes_max`. */
export class Recording {
  readonly #time: Time;
  readonly #waiting = new Set<() => void>();
  /** Oldest first. */
  #entries: Stored[] = [];
  #bytes = 0;
  #last = 0;

  constructor(time: Time) {
    this.#time = time;
  }

  /** The number of the latest entry in all worlds, or 0 if there is none. */
  get last(): number {
    return this.#last;
  }

  add(world: number, made: NewEntry): void {
    const [params, answer] = [recordable(made.params), recordable(made.answer)];
    const entry = { n: ++this.#last, at: this.#time.now(), ...made, params, answer };
    const bytes = Buffer.byteLength(JSON.stringify(entry));
    this.#entries.push({ world, entry, bytes });
    this.#bytes += bytes;
    let dropped = 0;
    while (
      this.#entries.length - dropped > limits.recorded_entries_max ||
      this.#bytes > limits.recorded_bytes_max
    )
      this.#bytes -= (this.#entries[dropped++] as Stored).bytes;
    if (dropped > 0) this.#entries = this.#entries.slice(dropped);
    for (const check of this.#waiting) check();
  }

  /** Returns a world's entries, oldest first, at most `limits.recording_page_max`. */
  list(world: number, { kind, name, after = 0 }: EntryFilter): Entry[] {
    const found: Entry[] = [];
    for (const { world: of, entry } of this.#entries) {
      if (of !== world || entry.n <= after) continue;
      if (kind !== undefined && entry.kind !== kind) continue;
      if (name !== undefined && entry.name !== name) continue;
      if (found.push(entry) === limits.recording_page_max) break;
    }
    return found;
  }

  /**
   * Returns the entries that match `filter` once there are at least `count` of them, or after `ms` on the machine's
   * clock. Throws `too_many_requests` if too many calls are waiting.
   */
  async wait(
    world: number,
    filter: EntryFilter,
    { count, ms, clock }: { readonly count: number; readonly ms: number; readonly clock: Time },
  ): Promise<Entry[]> {
    if (ms > 0 && this.list(world, filter).length < count) {
      if (this.#waiting.size >= limits.recording_waits_max) fail('too_many_requests', { retry_after: 1 });
      let check = () => {};
      const enough = new Promise<void>((resolve) => {
        check = () => this.list(world, filter).length >= count && resolve();
      });
      this.#waiting.add(check);
      await clock.within(ms, enough);
      this.#waiting.delete(check);
    }
    return this.list(world, filter);
  }

  /** Removes a world's entries. */
  remove(world: number): void {
    this.#entries = this.#entries.filter((stored) => stored.world !== world);
    this.#bytes = this.#entries.reduce((sum, { bytes }) => sum + bytes, 0);
  }
}
