/** Builds pages of lists, bounded in items and in bytes. */
import { limits } from '../limits.js';

export interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor?: string;
}

/** Rows shown per step. A page that is full stops after the current step. */
const shownAtOnce = 10;

/**
 * Returns as many rows as fit into `limits.page_bytes_max`, at least one. `show` turns some rows into items, with null
 * for rows that are gone. `more` says whether rows follow. `cursorOf` gives the cursor of the page that starts after a
 * row.
 */
export async function page<R, T>(
  rows: readonly R[],
  more: boolean,
  cursorOf: (row: R) => string,
  show: (rows: readonly R[]) => Promise<ReadonlyArray<T | null>>,
): Promise<Page<T>> {
  const items: T[] = [];
  let bytes = 0;
  for (let from = 0; from < rows.length; from += shownAtOnce) {
    const shown = await show(rows.slice(from, from + shownAtOnce));
    for (const [i, item] of shown.entries()) {
      if (item === null) continue;
      bytes += Buffer.byteLength(JSON.stringify(item)) + 1;
      if (items.length > 0 && bytes > limits.page_bytes_max)
        return { items, next_cursor: cursorOf(rows[from + i - 1] as R) };
      items.push(item);
    }
  }
  const last = rows.at(-1);
  return { items, ...(more && last !== undefined ? { next_cursor: cursorOf(last) } : {}) };
}

/** `page` for rows queried with `limit + 1`: the extra row tells that more follow. */
export const pageOfRows = <R, T>(
  found: readonly R[],
  limit: number,
  cursorOf: (row: R) => string,
  show: (rows: readonly R[]) => Promise<ReadonlyArray<T | null>>,
): Promise<Page<T>> => page(found.slice(0, limit), found.length > limit, cursorOf, show);

/** A `show` for rows that need no further reads. */
export const viewed =
  <R, T>(view: (row: R) => T) =>
  async (rows: readonly R[]): Promise<T[]> =>
    rows.map(view);
