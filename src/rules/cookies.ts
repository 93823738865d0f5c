/** Reads cookies from the header of a request. */

/**
 * Returns the value of a cookie, or '' if the header has no cookie of this name. If several cookies have the name, the
 * first counts, because browsers send the cookie with the longest path first.
 */
export function cookieValue(header: string, name: string): string {
  for (const part of header.split(';')) {
    const at = part.indexOf('=');
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim();
  }
  return '';
}
