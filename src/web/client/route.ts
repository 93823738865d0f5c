/** The open page, from the fragment of the URL: the service itself serves only one page. */
import { Cell } from './signal.js';

export interface Route {
  /** Name of the page: `chat`, `bot` (its page before it is started), `bots`, `settings` or others; '' for none. */
  readonly page: string;
  readonly id: string;
  readonly tab: string;
}

function read(): Route {
  const [page = '', id = '', tab = ''] = location.hash.replace(/^#\/?/, '').split('/').map(decode);
  return { page, id, tab };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return '';
  }
}

export const route = new Cell<Route>(read());
addEventListener('hashchange', () => route.set(read()));

export function go(path: string): void {
  location.hash = path === '' ? '' : `#/${path}`;
}
