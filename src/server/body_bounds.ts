/** How large the body of a call may be whose endpoint takes bytes. */
import { limits } from '../limits.js';
import { endpoints } from './endpoints.gen.js';
import { createRouter } from './router.js';

/** In bytes: `usual` for every other call. */
export function rawBodyBound(): (verb: string, path: string, usual: number) => number {
  const find = createRouter(endpoints.filter(({ rawBody }) => rawBody));
  return (verb, path, usual) => {
    const found = find(verb, path);
    return found === null || found === 'other_verb' ? usual : limits.picture_bytes_max;
  };
}
