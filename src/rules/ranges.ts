/** Parses `Range` headers of file requests (RFC 9110 §14.2). */

import { ruleLimits as limits } from './limits.js';

export type Range = readonly [start: number, end: number];

const digits = /^\d{0,15}$/;

/**
 * Returns the range of a `Range` header for a file of `size` bytes, or `unsatisfiable` if the range starts after the
 * end of the file. Returns null (send the whole file) if the header is absent, malformed or too long, uses another
 * unit, or contains several ranges.
 */
export function parseRange(header: string, size: number): Range | 'unsatisfiable' | null {
  if (header.length > limits.range_length_max) return null;
  const equals = header.indexOf('=');
  const dash = header.indexOf('-', equals);
  if (equals < 0 || dash < 0 || header.slice(0, equals).trim().toLowerCase() !== 'bytes') return null;
  const [first, last] = [header.slice(equals + 1, dash).trim(), header.slice(dash + 1).trim()];
  if (!digits.test(first) || !digits.test(last)) return null;
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
