/** Small translations between the program's values and what stands on the wire. */
import { STATUS_CODES } from 'node:http';
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
