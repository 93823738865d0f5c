/** Writes replies in a way that both engine versions accept. Also determines the client's address. */
import { STATUS_CODES } from 'node:http';
import type { StreamedReply, StreamForm } from '../server/request.js';
import type { EngineResponse } from './engine.js';

const statusLines = new Map<number, string>();

export function statusLine(status: number): string {
  let line = statusLines.get(status);
  if (line === undefined) {
    line = `${status} ${STATUS_CODES[status] ?? ''}`.trimEnd();
    statusLines.set(status, line);
  }
  return line;
}

export function peerAddress(response: EngineResponse): string {
  const bytes = new Uint8Array(response.getRemoteAddress());
  if (bytes.length === 4) return bytes.join('.');
  const mapped = bytes.length === 16 && bytes[10] === 0xff && bytes[11] === 0xff;
  if (mapped && bytes.subarray(0, 10).every((byte) => byte === 0)) return bytes.subarray(12).join('.');
  return Buffer.from(response.getRemoteAddressAsText()).toString('latin1');
}

/** A reply with more bytes than this is passed to the kernel piece by piece, so that the engine does not copy it. */
export const large_reply_bytes_min = 64 * 1024;

/**
 * Ends a reply without a body. Writes Content-Length itself, because the older engine handles the length wrongly: the
 * engine waits forever for a body if the length is above 0, and reports 2^63 if the length is `undefined`. A reply that
 * closes the connection has no Content-Length.
 */
export function endHead(response: EngineResponse, bytes: number, closes: boolean): void {
  if (closes) response.endWithoutBody(0, true);
  else response.writeHeader('Content-Length', String(bytes)).endWithoutBody();
}

/**
 * Ends a large reply. Returns whether the kernel has accepted all of it. If not, calls `done` when the kernel has the
 * last byte, so that a shutdown does not truncate the reply.
 */
export function endInPieces(response: EngineResponse, body: Buffer, done: () => void): boolean {
  const [, complete] = response.tryEnd(body, body.length);
  if (complete) return true;
  response.onWritable((offset) => {
    const [taken, completed] = response.tryEnd(body.subarray(offset), body.length);
    if (completed) done();
    return taken;
  });
  return false;
}

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
 * Ends a reply with status 304 or a reply to HEAD. For HEAD, Content-Length is the length of the omitted body.
 * `endHead` cannot write this length. Both engines close the connection if the request asked for it.
 */
export function endBodiless(response: EngineResponse, reply: StreamedReply, closes: boolean): void {
  writeHead(response, reply, closes);
  if (reply.status !== 304) response.writeHeader('Content-Length', String(reply.length));
  response.endWithoutBody();
}

export const eventForm: StreamForm = {
  contentType: 'text/event-stream',
  headers: [['X-Accel-Buffering', 'no']],
  filler: ':\n\n',
};

/**
 * Writes the head of a stream. Adds a filler (a comment that clients ignore), because the engine sends the head only
 * together with some body.
 */
export function beginStream(response: EngineResponse, { contentType, headers, filler }: StreamForm): void {
  response.writeHeader('Content-Type', contentType);
  for (const [name, value] of headers) response.writeHeader(name, value);
  response.writeHeader('Cache-Control', 'no-store');
  response.write(filler);
}
