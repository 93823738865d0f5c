/** Reads from the fragment of the URL which page is open. The service itself serves only one page. */
import { Cell } from './signal.js';

export interface Route {
  /**
   * The name of the page: `chat`, `bot` (a bot that the person has not started), `person`, `bots`, `settings` or
   * another name. '' if no page is open. `archive` if only the list of archived chats is open.
   */
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
