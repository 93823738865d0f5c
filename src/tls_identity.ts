/**
 * Corrects how Node verifies the host of a TLS connection. Node 22.23 and 24.17 to 24.18 never match an IPv6 address in
 * a certificate (https://github.com/nodejs/node/issues/64144), so every connection to `https://[…]/` or `rediss://[…]`
 * would fail. Importing this file corrects all TLS connections of the process.
 */
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import tls from 'node:tls';

const checkOfNode = tls.checkServerIdentity;

/**
 * Does what Node's `tls.checkServerIdentity` does, but also accepts a matching IPv6 address. Returns the error, or
 * undefined if the certificate is valid for this host.
 */
export function checkServerIdentity(host: string, certificate: tls.PeerCertificate): Error | undefined {
  const wrong = checkOfNode(host, certificate);
  if (wrong === undefined || isIP(host) !== 6) return wrong;
  return new X509Certificate(certificate.raw).checkIP(host) === undefined ? wrong : undefined;
}

tls.checkServerIdentity = checkServerIdentity;
