/** Pieces of a reply, in the ways that both engines take them, and the address that it goes to. */
import { STATUS_CODES } from 'node:http';
import type { StreamedReply, StreamForm } from '../server/request.js';
import type { EngineResponse } from './engine.js';

const statusLines = new Map<number, string>();

/** `404 Not Found` for 404; a code without a standard text stands alone. */
export function statusLine(status: number): string {
  let line = statusLines.get(status);
  if (line === undefined) {
    line = `${status} ${STATUS_CODES[status] ?? ''}`.trimEnd();
    statusLines.set(status, line);
  }
  return line;
}

/** `127.0.0.1` or full IPv6 text; an IPv4 client of an IPv6 socket reads like one of an IPv4 socket. */
export function peerAddress(response: EngineResponse): string {
  const bytes = new Uint8Array(response.getRemoteAddress());
  if (bytes.length === 4) return bytes.join('.');
  const mapped = bytes.length === 16 && bytes[10] === 0xff && bytes[11] === 0xff;
  if (mapped && bytes.subarray(0, 10).every((byte) => byte === 0)) return bytes.subarray(12).join('.');
  return Buffer.from(response.getRemoteAddressAsText()).toString('latin1');
}

/** Above this a reply is handed over in the pieces that the kernel takes, instead of being copied by the engine. */
export const large_reply_bytes_min = 64 * 1024;

/**
 * The older engine takes a length other than 0 given to `endWithoutBody` for a body that it waits for without end, and
 * an `undefined` one for 2^63. So the header is written here, and a reply that closes reports no length.
 */
export function endHead(response: EngineResponse, bytes: number, closes: boolean): void {
  if (closes) response.endWithoutBody(0, true);
  else response.writeHeader('Content-Length', String(bytes)).endWithoutBody();
}

/** Ends a large reply; calls `done` when the kernel has the last byte, so that a shutdown does not cut it. */
export function endInPieces(response: EngineResponse, body: Buffer, done: () => void): void {
  const [, complete] = response.tryEnd(body, body.length);
  if (complete) {
    done();
    return;
  }
  response.onWritable((offset) => {
    const [taken, completed] = response.tryEnd(body.subarray(offset), body.length);
    if (completed) done();
    return taken;
  });
}

/** Status and headers of a reply that brings its own. */
export function writeHead(
  response: EngineResponse,
  { status, headers }: StreamedReply,
  closes: boolean,
): void {
  if (status !== 200) response.writeStatus(statusLine(status));
  for (const [name, value] of headers) response.writeHeader(name, value);
  if (closes) response.writeHeader('Connection', 'close');
}

/**
 * Ends a reply that has no body, for HEAD and 304. The length is that of the body left out, so `endHead` does not serve:
 * both engines close by themselves after a request that asked for it.
 */
export function endBodiless(response: EngineResponse, reply: StreamedReply, closes: boolean): void {
  writeHead(response, reply, closes);
  if (reply.status !== 304) response.writeHeader('Content-Length', String(reply.length));
  response.endWithoutBody();
}

/** Server-sent events, with a comment line of theirs as the filler. */
export const eventForm: StreamForm = {
  contentType: 'text/event-stream',
  headers: [['X-Accel-Buffering', 'no']],
  filler: ':\n\n',
};

/** The head of a stream, and a filler so that it goes out at once. */
export function beginStream(response: EngineResponse, { contentType, headers, filler }: StreamForm): void {
  response.writeHeader('Content-Type', contentType);
  for (const [name, value] of headers) response.writeHeader(name, value);
  response.writeHeader('Cache-Control', 'no-store');
  response.write(filler);
}
