/** Keeps an event stream open. Ends it when the client disconnects or the token is revoked. */

import type { ApiRequest } from '../server/request.js';
import { storeLimits as limits } from '../store/limits.js';
import type { Time } from '../time.js';

/**
 * Keeps an event stream open until the client disconnects or the token is revoked. Calls `ended` once, after the stream
 * has ended for any reason.
 */
export function openEvents(
  time: Time,
  request: ApiRequest,
  onRevoked: (listener: () => void) => () => void,
  ended: () => void,
) {
  const stream = request.openStream();
  let over = false;
  const end = () => {
    if (over) return;
    over = true;
    time.cancel(keepAlive);
    forget();
    ended();
  };
  const close = () => {
    end();
    stream.close();
  };
  /** Disconnects a client that reads too slowly. The client then reconnects with the last event id it received. */
  const write = (text: string) => {
    if (!over && !stream.write(text)) close();
  };
  const forget = onRevoked(close);
  const keepAlive = time.every(limits.stream_keepalive_ms, () => write(': \n\n'));
  request.onAbort(end);
  return {
    write,
    close,
    isOver: () => over,
    isBlocked: () => stream.isBlocked(),
    drained: () => stream.drained(),
  };
}
