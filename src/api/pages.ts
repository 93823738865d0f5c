/** Pages of lists: bounded in items and in bytes. */
import { limits } from '../limits.js';

export interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor?: string;
}

/**
 * As many of these items as fit into `limits.page_bytes_max`, at least one. `shown` are the items of `rows`, null for what has
 * gone meanwhile. `more`: whether anything follows. `cursorOf` names the row behind which the next page begins.
 */
export function page<R, T>(
  rows: readonly R[],
  shown: readonly (T | null)[],
  more: boolean,
  cursorOf: (row: R) => string,
): Page<T> {
  const items: T[] = [];
  let bytes = 0;
  for (const [i, item] of shown.entries()) {
    if (item === null) continue;
    bytes += Buffer.byteLength(JSON.stringify(item)) + 1;
    if (items.length > 0 && bytes > limits.page_bytes_max)
      return { items, next_cursor: cursorOf(rows[i - 1] as R) };
    items.push(item);
  }
  const last = rows.at(-1);
  return { items, ...(more && last !== undefined ? { next_cursor: cursorOf(last) } : {}) };
}

/** The same for rows of which one more than the page holds was read. */
export function pageOfRows<R, T>(
  found: readonly R[],
  limit: number,
  view: (row: R) => T,
  cursorOf: (row: R) => string,
): Page<T> {
  const rows = found.slice(0, limit);
  return page(rows, rows.map(view), found.length > limit, cursorOf);
}
