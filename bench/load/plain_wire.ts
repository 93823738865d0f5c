/**
 * An HTTP/1.1 client over plain sockets, for servers on this machine. It needs a fifth of the CPU time of a general
 * HTTP client: one process can send tens of thousands of requests a second on a shared core.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Sent, Wire } from '../../src/loadtest/fixed_rate.js';

type Over = (status: number, why: string) => void;

interface Line {
  readonly socket: Socket;
  rest: Buffer | null;
  over: Over | null;
}

function textOf({ method, path, headers, body }: Sent, host: string): string {
  let text = `${method} ${path} HTTP/1.1\r\nHost: ${host}\r\n`;
  for (const name in headers) text += `${name}: ${headers[name]}\r\n`;
  if (body === null) return `${text}\r\n`;
  return `${text}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/**
 * Returns the status of a complete answer, or 0 while the answer is incomplete. Throws for an answer without
 * `Content-Length`.
 */
function statusOf(data: Buffer): number {
  const end = data.indexOf('\r\n\r\n');
  if (end < 0) return 0;
  const head = data.toString('latin1', 0, end);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length === undefined) throw new Error('an answer has no length');
  return data.length >= end + 4 + Number(length) ? Number(head.slice(9, 12)) : 0;
}

/** Opens all connections immediately, and replaces closed connections. */
export async function plainWire(origin: string, connections: number): Promise<Wire> {
  const { hostname, port, host } = new URL(origin);
  const idle: Line[] = [];
  const all = new Set<Line>();
  let open = 0;
  const end = (line: Line, status: number, why: string) => {
    const { over } = line;
    if (over === null) return;
    line.over = null;
    open--;
    if (why === '') idle.push(line);
    else line.socket.destroy();
    over(status, why);
  };
  function makeLine(): Line {
    const socket = connect(Number(port), hostname);
    const line: Line = { socket, rest: null, over: null };
    all.add(line);
    socket.setNoDelay(true);
    socket.on('data', (chunk) => {
      const data = line.rest === null ? chunk : Buffer.concat([line.rest, chunk]);
      try {
        const status = statusOf(data);
        line.rest = status === 0 ? data : null;
        if (status !== 0) end(line, status, '');
      } catch (error) {
        end(line, 0, (error as Error).message);
      }
    });
    socket.on('error', (error) => end(line, 0, error.message));
    socket.on('close', () => {
      all.delete(line);
      const at = idle.indexOf(line);
      if (at >= 0) idle.splice(at, 1);
      end(line, 0, 'the connection was closed');
    });
    return line;
  }
  await Promise.all(
    Array.from({ length: connections }, async () => {
      const line = makeLine();
      await once(line.socket, 'connect');
      idle.push(line);
    }),
  );
  return {
    free: () => connections - open,
    send(request, over) {
      // A socket that is not connected yet sends the data once it has connected.
      const line = idle.pop() ?? makeLine();
      open++;
      line.over = over;
      line.socket.write(textOf(request, host));
    },
    async close() {
      for (const { socket } of all) socket.destroy();
    },
  };
}
