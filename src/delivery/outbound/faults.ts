/** Lists the reasons why a delivery got no answer, with messages for the bot's owner. */

import { errors } from 'undici';

/**
 * What caused a failure: the host's addresses (`reserved`, `unresolved`), the port (`port`), the connection (`connect`,
 * `tls`) or the answer (`timeout`, `closed`, `malformed`). `busy` means that this process had too many connections, so
 * the receiver is not the cause.
 */
export type FaultReason =
  | 'reserved'
  | 'port'
  | 'unresolved'
  | 'connect'
  | 'tls'
  | 'timeout'
  | 'closed'
  | 'malformed'
  | 'busy';

/**
 * The error of a delivery that got no answer. `last_error_message` shows the message of this error unchanged, so the
 * message must contain no text from the receiver.
 */
export class DeliveryFault extends Error {
  readonly reason: FaultReason;
  /**
   * Depends on the reason: the forbidden address for `reserved`, the port for `port`, and the resolver's reason for
   * `unresolved`.
   */
  readonly detail: string | undefined;

  constructor(reason: FaultReason, message: string, more: { detail?: string; cause?: unknown } = {}) {
    super(message, { cause: more.cause });
    this.name = 'DeliveryFault';
    this.reason = reason;
    this.detail = more.detail;
  }
}

const connection: Record<string, readonly [FaultReason, string]> = {
  ECONNREFUSED: ['connect', 'Connection refused'],
  ETIMEDOUT: ['connect', 'Connection timed out'],
  EHOSTUNREACH: ['connect', 'No route to host'],
  ENETUNREACH: ['connect', 'Network is unreachable'],
  EADDRNOTAVAIL: ['busy', 'Too many connections are open'],
  EMFILE: ['busy', 'Too many connections are open'],
  ENFILE: ['busy', 'Too many connections are open'],
  ECONNRESET: ['closed', 'Connection reset by peer'],
  EPIPE: ['closed', 'Connection reset by peer'],
  UND_ERR_SOCKET: ['closed', 'Connection closed before the answer was complete'],
  UND_ERR_HEADERS_OVERFLOW: ['malformed', 'Wrong response from the webhook: header is too large'],
};

/** The fault for an answer that is not HTTP, or that uses an unsupported part of HTTP. */
export const notHttp = ['malformed', 'Wrong response from the webhook: not an HTTP answer'] as const;

const verification: Record<string, string> = {
  CERT_HAS_EXPIRED: 'certificate has expired',
  CERT_NOT_YET_VALID: 'certificate is not yet valid',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'self-signed certificate',
  SELF_SIGNED_CERT_IN_CHAIN: 'self-signed certificate in certificate chain',
  UNABLE_TO_GET_ISSUER_CERT: 'unable to get issuer certificate',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'unable to get local issuer certificate',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'unable to verify the first certificate',
  CERT_SIGNATURE_FAILURE: 'certificate signature failure',
  CERT_REVOKED: 'certificate revoked',
  CERT_UNTRUSTED: 'certificate not trusted',
  CERT_REJECTED: 'certificate rejected',
  CERT_CHAIN_TOO_LONG: 'certificate chain too long',
  INVALID_CA: 'invalid CA certificate',
  INVALID_PURPOSE: 'unsupported certificate purpose',
  ERR_TLS_CERT_ALTNAME_INVALID: 'certificate is not valid for the host of the URL',
};

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';

/** Converts a socket error to a fault. Unknown error codes become `otherwise`. */
export function connectionFault(error: unknown, otherwise: readonly [FaultReason, string]): DeliveryFault {
  if (error instanceof DeliveryFault) return error;
  const code = codeOf(error);
  const [reason, message] =
    connection[code] ?? (error instanceof errors.HTTPParserError ? notHttp : otherwise);
  return new DeliveryFault(reason, message, { cause: error });
}

export function tlsFault(error: unknown): DeliveryFault {
  const code = codeOf(error);
  const verified = verification[code];
  if (verified !== undefined) return new DeliveryFault('tls', `SSL error: ${verified}`, { cause: error });
  return connectionFault(error, ['tls', 'SSL error: handshake failed']);
}
