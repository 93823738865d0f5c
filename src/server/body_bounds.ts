/** Limits the body size of endpoints that take raw bytes instead of parameters. */
import { fileLimits as limits } from '../files/limits.js';
import type { Endpoint } from './endpoint.js';
import { createRouter } from './router.js';

export function rawBodyBound(
  endpoints: readonly Endpoint[],
): (verb: string, path: string, usual: number) => number {
  const find = createRouter(endpoints.filter(({ rawBody }) => rawBody));
  return (verb, path, usual) => {
    const found = find(verb, path);
    return found === null || found === 'other_verb' ? usual : limits.picture_bytes_max;
  };
}
