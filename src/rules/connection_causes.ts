/** Explains connection errors to the operator who configured the address. */

const untrusted = 'its certificate is not trusted: add its authority with NODE_EXTRA_CA_CERTS';
const plain = 'the server does not use TLS on this port';

const causes: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused: nothing listens there',
  ECONNRESET: 'the server closed the connection: it may require TLS, or a firewall refused the connection',
  ETIMEDOUT: 'connection timed out: the host is down, a firewall drops packets, or the port does not use TLS',
  UND_ERR_CONNECT_TIMEOUT:
    'connection timed out: the host is down, a firewall drops packets, or the port does not use TLS',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'the network is unreachable',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name could not be resolved: the name server does not answer',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not yet valid: check the clocks',
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host name',
  ERR_SSL_WRONG_VERSION_NUMBER: plain,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: plain,
};

const refusals: ReadonlyArray<readonly [RegExp, string]> = [
  [/^(WRONGPASS|ERR invalid password)/, 'the user or the password is wrong'],
  [/^NOAUTH/, 'a password is required, but the address has none'],
  [/wrong version number|packet length too long/, plain],
  [
    /before secure TLS connection was established/,
    'the server closed the connection during the TLS handshake: this port may not use TLS',
  ],
];

/** Returns the cause, followed by the original message in brackets. For an unknown error, returns only the message. */
export function connectionCause(error: unknown): string {
  const { message = '', code = '', cause } = error as { message?: string; code?: string; cause?: unknown };
  const known = refusals.find(([form]) => form.test(message))?.[1] ?? causes[code];
  if (known !== undefined)
    return message === '' || message === code ? `${known} (${code})` : `${known} (${message})`;
  return cause === undefined || cause === null ? message || code || String(error) : connectionCause(cause);
}
