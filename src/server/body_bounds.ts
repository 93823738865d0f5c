/** The body size limit of endpoints that take raw bytes instead of parameters. */
import { limits } from '../limits.js';
import { endpoints } from './endpoints.gen.js';
import { createRouter } from './router.js';

/** Returns the limit in bytes for a verb and a path; `usual` for all other calls. */
export function rawBodyBound(): (verb: string, path: string, usual: number) => number {
  const find = createRouter(endpoints.filter(({ rawBody }) => rawBody));
  return (verb, path, usual) => {
    const found = find(verb, path);
    return found === null || found === 'other_verb' ? usual : limits.picture_bytes_max;
  };
}
