/** Reads the relevant request headers in one pass and detects ambiguous heads. */
import type { EngineRequest } from './engine.js';

/**
 * The headers of a request. The text of an absent header is ''. For most repeated headers, only the last value is kept.
 */
export class Head {
  contentType = '';
  authorization = '';
  lastEventId = '';
  idempotencyKey = '';
  coalesce = '';
  consumer = '';
  consumerTimeout = '';
  forwardedFor = '';
  contentLength = '';
  transferEncoding = '';
  host = '';
  connection = '';
  range = '';
  ifRange = '';
  ifNoneMatch = '';
  requestId = '';
  prefer = '';
  traceparent = '';
  cookie = '';
  userAgent = '';
  handover = false;
  contentLengths = 0;
  transferEncodings = 0;
  hosts = 0;
}

/**
 * The object to which `visit` writes. All requests share this variable, which saves a closure per request. This is
 * safe, because the engine calls `visit` only until `forEach` returns.
 */
let head: Head;

/** Stores a header. Compares with the most frequent headers first. */
function visit(name: string, value: string): void {
  switch (name) {
    case 'host':
      head.host = value;
      head.hosts++;
      break;
    case 'content-length':
      head.contentLength = value;
      head.contentLengths++;
      break;
    case 'content-type':
      head.contentType = value;
      break;
    case 'connection':
      head.connection = head.connection ? `${head.connection},${value}` : value;
      break;
    case 'authorization':
      head.authorization = value;
      break;
    case 'x-forwarded-for':
      head.forwardedFor = head.forwardedFor ? `${head.forwardedFor},${value}` : value;
      break;
    case 'x-request-id':
      head.requestId = value;
      break;
    case 'idempotency-key':
      head.idempotencyKey = value;
      break;
    case 'prefer':
      head.prefer = head.prefer ? `${head.prefer},${value}` : value;
      break;
    case 'transfer-encoding':
      head.transferEncoding = value;
      head.transferEncodings++;
      break;
    case 'x-petrel-handover':
      head.handover = true;
      break;
    default:
      visitRare(name, value);
  }
}

function visitRare(name: string, value: string): void {
  switch (name) {
    case 'x-service-coalesce':
      head.coalesce = value;
      break;
    case 'x-service-consumer':
      head.consumer = value;
      break;
    case 'x-service-consumer-timeout':
      head.consumerTimeout = value;
      break;
    case 'range':
      head.range = value;
      break;
    case 'if-range':
      head.ifRange = value;
      break;
    case 'if-none-match':
      head.ifNoneMatch = value;
      break;
    case 'last-event-id':
      head.lastEventId = value;
      break;
    case 'traceparent':
      head.traceparent = value;
      break;
    case 'user-agent':
      head.userAgent = value;
      break;
    case 'cookie':
      // Joins repeated `Cookie` headers. A browser may send several over HTTP/2, and the proxy may pass each of them on
      // separately.
      head.cookie = head.cookie ? `${head.cookie}; ${value}` : value;
      break;
  }
}

export function readHead(request: EngineRequest, into: Head): void {
  head = into;
  request.forEach(visit);
}

/**
 * Returns whether a head must be refused, because a proxy may understand its length or host differently from the engine
 * (RFC 9112 §3.2, §6.3). A missing `Host` is refused even in HTTP/1.0, because the engines do not report the protocol
 * version.
 */
export function isAmbiguous(head: Head): boolean {
  if (head.hosts !== 1 || head.host === '') return true;
  if (head.contentLengths > 0 && (head.contentLengths > 1 || !/^\d{1,15}$/.test(head.contentLength)))
    return true;
  if (head.transferEncodings === 0) return false;
  return head.transferEncodings > 1 || head.transferEncoding !== 'chunked' || head.contentLengths > 0;
}

export interface SignedBodies {
  readonly path: string;
  readonly keyId: string;
  readonly signature: string;
  readonly bytesMax: number;
}

export function asksToClose(connection: string): boolean {
  return connection !== '' && /(?:^|,)\s*close\s*(?:,|$)/i.test(connection);
}

/**
 * Returns whether the engine itself ends the connection after the reply. The engine recognises `Connection: close` by
 * the length of the header. Call this function only if `asksToClose` is true.
 */
export const engineCloses = (connection: string): boolean => connection.length === 'close'.length;

/** Returns whether the body may contain files. Such a body may be as large as an upload. */
export function isUpload(contentType: string): boolean {
  return /^\s*multipart\/form-data\s*(?:;|$)/i.test(contentType);
}
