/** Compares entity tags (ETags). Clients use ETags to revalidate a cached response (RFC 9110 §8.8.3, §13.1.2). */

/** Compares tags by weak comparison. Returns false for an absent header (''). */
export const matchesTag = (header: string, tag: string): boolean =>
  header.trim() === '*' || header.split(',').some((one) => one.trim().replace(/^W\//, '') === tag);
