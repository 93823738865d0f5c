/** A server on a free port, and a client that writes the given bytes unchanged. */
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { type Engine, loadEngine } from '../../src/http/engine.js';
import { type HttpServer, type ListenOptions, listen } from '../../src/http/server.js';
import { limits } from '../../src/limits.js';
import type { RequestHandler } from '../../src/server/request.js';

export const engine: Engine = loadEngine();
/** The current engine answers some malformed requests itself, with its own HTML page. */
export const isCurrent = engine.headBytesMax === limits.head_bytes_max;

export interface Fixture {
  readonly server: HttpServer;
  readonly port: number;
  readonly faults: unknown[];
  readonly seen: string[];
}

export async function start(
  handler: RequestHandler,
  more: Partial<Pick<ListenOptions, 'admit' | 'bodiesBytesMax' | 'clientAddress' | 'quietMs'>> = {},
): Promise<Fixture> {
  const faults: unknown[] = [];
  const seen: string[] = [];
  const server = await listen({
    engine,
    host: '127.0.0.1',
    port: 0,
    shared: false,
    quietMs: 0,
    ...more,
    handler: (request) => {
      seen.push(`${request.method} ${request.path}`);
      return handler(request);
    },
    onFault: (error) => faults.push(error),
  });
  return { server, port: server.port, faults, seen };
}

export class RawClient {
  readonly socket: Socket;
  closed = false;
  private bytes = '';

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('data', (chunk) => {
      this.bytes += chunk.toString('latin1');
    });
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => {
      this.closed = true;
    });
  }

  /** The text received so far. Leaves out the headers that contain the time and the name of the engine. */
  get text(): string {
    return this.bytes.replace(/(?:Date|uWebSockets): [^\r]*\r\n/g, '');
  }

  /** The statuses of the final replies so far, without `100 Continue`. */
  get statuses(): number[] {
    return [...this.bytes.matchAll(/HTTP\/1\.1 (\d{3}) /g)]
      .map((match) => Number(match[1]))
      .filter((s) => s !== 100);
  }

  async send(...chunks: (string | Buffer)[]): Promise<this> {
    for (const [index, chunk] of chunks.entries()) {
      if (index > 0) await sleep(15);
      if (!this.socket.writable) break;
      this.socket.write(chunk as string, 'latin1');
    }
    return this;
  }

  async until(done: () => boolean, msMax = 15_000): Promise<this> {
    const end = Date.now() + msMax;
    while (!done() && Date.now() < end) await sleep(5);
    return this;
  }

  async untilClosed(msMax = 30_000): Promise<this> {
    await this.until(() => this.closed, msMax);
    expect(this.closed, `connection is still open after ${msMax} ms`).toBe(true);
    return this;
  }

  destroy(): void {
    this.socket.destroy();
  }
}

export const headOf = (line: string, ...headers: string[]) =>
  `${line} HTTP/1.1\r\n${['Host: a', ...headers].join('\r\n')}\r\n\r\n`;

export async function expectAlive(port: number): Promise<void> {
  const client = await new RawClient(port).send(headOf('GET /alive'));
  await client.until(() => client.statuses.length > 0);
  client.destroy();
  expect(client.statuses).toEqual([200]);
}
