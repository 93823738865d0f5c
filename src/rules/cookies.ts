/** Reads cookies from a request's header. */

/**
 * Returns the value of the cookie `name`, or '' if the header has no such cookie. If there are several, returns the
 * first, because browsers send the cookie with the longest path first.
 */
export function cookieValue(header: string, name: string): string {
  for (const part of header.split(';')) {
    const at = part.indexOf('=');
    if (at > 0 && part.slice(0, at).trim() === name) return part.slice(at + 1).trim();
  }
  return '';
}
