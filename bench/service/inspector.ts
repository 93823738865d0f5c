/** Collects the garbage of another Node.js process through its inspector. */
import { once } from 'node:events';
import { WebSocket } from 'undici';

/** Collects all garbage of the process whose inspector listens on this port of 127.0.0.1. */
export async function collectGarbage(port: number): Promise<void> {
  const answer = await fetch(`http://127.0.0.1:${port}/json/list`);
  const [target] = (await answer.json()) as Array<{ readonly webSocketDebuggerUrl: string }>;
  const socket = new WebSocket(target?.webSocketDebuggerUrl ?? '');
  await once(socket as never, 'open');
  socket.send(JSON.stringify({ id: 1, method: 'HeapProfiler.collectGarbage' }));
  await once(socket as never, 'message');
  socket.close();
}
