/** Collects the relevant request headers in one pass and detects ambiguous heads. */
import type { EngineRequest } from './engine.js';

/** The relevant headers. Text fields are '' when absent. The last of repeated headers counts. */
export class Head {
  contentType = '';
  authorization = '';
  lastEventId = '';
  idempotencyKey = '';
  forwardedFor = '';
  contentLength = '';
  transferEncoding = '';
  host = '';
  connection = '';
  range = '';
  ifRange = '';
  ifNoneMatch = '';
  requestId = '';
  handover = false;
  contentLengths = 0;
  transferEncodings = 0;
  hosts = 0;
}

/**
 * Target of `visit`. Engines call it before `forEach` returns, so one variable serves all requests without a closure.
 */
let head: Head;

/** Compares lengths first, because most headers are irrelevant and each name is a new string. */
function visit(name: string, value: string): void {
  switch (name.length) {
    case 4:
      if (name === 'host') {
        head.host = value;
        head.hosts++;
      }
      break;
    case 5:
      if (name === 'range') head.range = value;
      break;
    case 8:
      if (name === 'if-range') head.ifRange = value;
      break;
    case 10:
      if (name === 'connection') head.connection = head.connection ? `${head.connection},${value}` : value;
      break;
    case 12:
      if (name === 'content-type') head.contentType = value;
      else if (name === 'x-request-id') head.requestId = value;
      break;
    case 13:
      if (name === 'authorization') head.authorization = value;
      else if (name === 'last-event-id') head.lastEventId = value;
      else if (name === 'if-none-match') head.ifNoneMatch = value;
      break;
    case 14:
      if (name === 'content-length') {
        head.contentLength = value;
        head.contentLengths++;
      }
      break;
    case 15:
      if (name === 'idempotency-key') head.idempotencyKey = value;
      else if (name === 'x-forwarded-for')
        head.forwardedFor = head.forwardedFor ? `${head.forwardedFor},${value}` : value;
      break;
    case 17:
      if (name === 'transfer-encoding') {
        head.transferEncoding = value;
        head.transferEncodings++;
      } else if (name === 'x-petrel-handover') head.handover = true;
      break;
  }
}

/** Fills `into`, which must be new. */
export function readHead(request: EngineRequest, into: Head): void {
  head = into;
  request.forEach(visit);
}

/**
 * True for a head that must be refused, because an intermediary may read its length or host differently than the engine
 * (RFC 9112 §3.2, §6.3). The engines do not report the protocol version, so a missing `Host` is refused in HTTP/1.0
 * too.
 */
export function isAmbiguous(head: Head): boolean {
  if (head.hosts !== 1 || head.host === '') return true;
  if (head.contentLengths > 0 && (head.contentLengths > 1 || !/^\d{1,15}$/.test(head.contentLength)))
    return true;
  if (head.transferEncodings === 0) return false;
  return head.transferEncodings > 1 || head.transferEncoding !== 'chunked' || head.contentLengths > 0;
}

/** The path whose bodies are signed, and the lower-case header names that carry key id and signature. */
export interface SignedBodies {
  readonly path: string;
  readonly keyId: string;
  readonly signature: string;
  readonly bytesMax: number;
}

/** Whether the client asks to close the connection after this reply. */
export function asksToClose(connection: string): boolean {
  return connection !== '' && /(?:^|,)\s*close\s*(?:,|$)/i.test(connection);
}

/** Whether the body may hold files and be as large as an upload. */
export function isUpload(contentType: string): boolean {
  return /^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType);
}
