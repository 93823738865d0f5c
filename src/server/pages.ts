/** Builds the pages of lists, with limits on items and bytes. */
import { ruleLimits as limits } from '../rules/limits.js';

export interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor?: string;
}

/** How many rows are converted to items at a time. Conversion stops when the page is full. */
const shownAtOnce = 10;

/**
 * Builds a page from as many rows as fit into `limits.page_bytes_max`, but at least one. `show` converts several rows
 * to items, and returns null for a row that no longer exists. `more` says whether more rows follow. `cursorOf` returns
 * the cursor of the page that starts after the given row.
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

export const each =
  <R, T>(view: (row: R) => T | Promise<T>) =>
  (rows: readonly R[]): Promise<T[]> =>
    Promise.all(rows.map(view));

/** Builds a page from rows that were queried with `limit + 1`. The extra row shows that more rows follow. */
export const pageOfRows = <R, T>(
  found: readonly R[],
  limit: number,
  view: (row: R) => T | Promise<T>,
  cursorOf: (row: R) => string,
): Promise<Page<T>> => page(found.slice(0, limit), found.length > limit, cursorOf, each(view));

export const pageById = <R extends { readonly id: number }, T>(
  found: readonly R[],
  limit: number,
  view: (row: R) => T | Promise<T>,
): Promise<Page<T>> => pageOfRows(found, limit, view, ({ id }) => String(id));

export async function* allPages<R>(
  read: (after: number, limit: number) => Promise<readonly R[]>,
  cursorOf: (row: R) => number,
  first = 0,
): AsyncIterable<readonly R[]> {
  for (let after = first; ; ) {
    const rows = await read(after, limits.page_size_max);
    yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < limits.page_size_max) return;
    after = cursorOf(last);
  }
}
