/** Entity tags, by which clients tell which version of something they have (RFC 9110 §8.8.3, §13.1.2). */

/** Whether an `If-None-Match` names the tag. Weak tags match too. False for an absent header (''). */
export const matchesTag = (header: string, tag: string): boolean =>
  header.trim() === '*' || header.split(',').some((one) => one.trim().replace(/^W\//, '') === tag);
