/** Why a connection to a server failed, for the person who set its address. */

const untrusted = 'its certificate is not trusted: name its authority by NODE_EXTRA_CA_CERTS';
const plain = 'it answers without TLS: this is a plain TCP port';

const causes: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused: nothing listens there',
  ECONNRESET: 'it closed the connection: a TLS port that is spoken to without TLS does so, or a firewall',
  ETIMEDOUT:
    'no connection in time: the host is down, a firewall drops packets, or a port without TLS is spoken to with TLS',
  UND_ERR_CONNECT_TIMEOUT:
    'no connection in time: the host is down, a firewall drops packets, or a port without TLS is spoken to with TLS',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'the network is unreachable',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name could not be resolved: the name server does not answer',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not yet valid: look at the clocks',
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host name than that of the address',
  ERR_SSL_WRONG_VERSION_NUMBER: plain,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: plain,
};

/** What Redis answers at the start of a connection. */
const refusals: ReadonlyArray<readonly [RegExp, string]> = [
  [/^(WRONGPASS|ERR invalid password)/, 'the user or the password is wrong'],
  [/^NOAUTH/, 'it wants a password, and the address has none'],
  [/wrong version number|packet length too long/, plain],
  [
    /before secure TLS connection was established/,
    'it closed the connection during the TLS handshake: this may be a port without TLS',
  ],
];

/** A sentence with the error's own words behind it; these alone where nothing more is known. */
export function connectionCause(error: unknown): string {
  const { message = '', code = '', cause } = error as { message?: string; code?: string; cause?: unknown };
  const known = refusals.find(([form]) => form.test(message))?.[1] ?? causes[code];
  if (known !== undefined)
    return message === '' || message === code ? `${known} (${code})` : `${known} (${message})`;
  return cause === undefined || cause === null ? message || code || String(error) : connectionCause(cause);
}
