/** Which part of a file a client asks for (RFC 9110 §14.2). */

/** First and last byte, both inclusive. */
export type Range = readonly [start: number, end: number];

/**
 * The one range of a `Range` header over `size` bytes; null for the whole: a header that is absent, of another unit, malformed,
 * or asks for several ranges may be ignored. `unsatisfiable` when it lies beyond the end.
 */
export function parseRange(header: string, size: number): Range | 'unsatisfiable' | null {
  const found = /^\s*bytes\s*=\s*(\d{0,15})\s*-\s*(\d{0,15})\s*$/i.exec(header);
  if (!found) return null;
  const [, first = '', last = ''] = found;
  if (first === '') {
    if (last === '') return null;
    const count = Number(last);
    return count === 0 || size === 0 ? 'unsatisfiable' : [Math.max(0, size - count), size - 1];
  }
  const start = Number(first);
  if (last !== '' && Number(last) < start) return null;
  if (start >= size) return 'unsatisfiable';
  return [start, last === '' ? size - 1 : Math.min(Number(last), size - 1)];
}
