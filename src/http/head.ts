/** Collects the request headers that matter in one pass and tells heads that two servers could read differently. */
import type { EngineRequest } from './engine.js';

/** What a head says. The text fields are '' when the header is absent; of a repeated one the last counts. */
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

/** Where `visit` writes. Engines call it before `forEach` returns, so one variable serves all requests and none
 * needs a closure. */
let head: Head;

/** Compares lengths first: most headers of a request are of no interest, and the names come as fresh strings. */
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
 * True for a head that must be refused before any handler runs, because an intermediary may find another end of the
 * request or another addressee than the engine does (RFC 9112 §3.2, §6.3). The engines do not tell the version of
 * the protocol, so a missing `Host` is refused in HTTP/1.0 too.
 */
export function isAmbiguous(head: Head): boolean {
  if (head.hosts !== 1 || head.host === '') return true;
  if (head.contentLengths > 0 && (head.contentLengths > 1 || !/^\d{1,15}$/.test(head.contentLength)))
    return true;
  if (head.transferEncodings === 0) return false;
  return head.transferEncodings > 1 || head.transferEncoding !== 'chunked' || head.contentLengths > 0;
}

/** Where bodies are signed, and in which headers that is told (in lower case). */
export interface SignedBodies {
  readonly path: string;
  readonly keyId: string;
  readonly signature: string;
  readonly bytesMax: number;
}

/** True when the client asks that the connection end with this exchange. */
export function asksToClose(connection: string): boolean {
  return connection !== '' && /(?:^|,)\s*close\s*(?:,|$)/i.test(connection);
}

/** True for the type of body that may hold files, and may be as large as an upload. */
export function isUpload(contentType: string): boolean {
  return /^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType);
}
