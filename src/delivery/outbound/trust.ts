/**
 * Decides which certificates a receiver may present: certificates from public authorities, or the certificate that was
 * uploaded for the bot.
 */
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { createSecureContext, type PeerCertificate, type SecureContext } from 'node:tls';
import { fail } from '../../errors.js';
import { checkServerIdentity } from '../../tls_identity.js';
import { deliveryLimits as limits } from '../limits.js';

const blocks = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Parses an uploaded file of PEM certificates, up to `limits.webhook_certificates_max`. Returns only the certificates,
 * so that a private key in the file is not kept. Errors: `certificate_too_big`, `certificate_invalid` (behaviour §10).
 */
export function readCertificate(given: Buffer): string {
  if (given.length > limits.webhook_certificate_bytes_max) fail('certificate_too_big');
  try {
    const found = given.toString('latin1').match(blocks) ?? fail('certificate_invalid');
    if (found.length > limits.webhook_certificates_max) fail('certificate_invalid');
    const certificate = found.map((block) => new X509Certificate(block).toString()).join('');
    createSecureContext({ ca: certificate });
    return certificate;
  } catch {
    return fail('certificate_invalid');
  }
}

export interface Trust {
  readonly secureContext: SecureContext;
  /** Returns the error if the certificate is not valid for this host, otherwise undefined. */
  checkHost(host: string, certificate: PeerCertificate): Error | undefined;
}

let publicTrust: Trust | undefined;

/**
 * Trusts the authorities that Node trusts. Operators can add more with NODE_EXTRA_CA_CERTS. Parsing all certificates
 * takes tens of milliseconds, so a process does it only once, and only when needed.
 */
function trustInPublic(): Trust {
  publicTrust ??= {
    secureContext: createSecureContext({ minVersion: 'TLSv1.2' }),
    checkHost: checkServerIdentity,
  };
  return publicTrust;
}

/**
 * Checks the host of an uploaded certificate. Accepts an IP address in the common name, because Telegram's guide to
 * self-signed certificates produces such certificates. Node compares common names only with host names.
 */
function checkHostOfOwn(host: string, certificate: PeerCertificate): Error | undefined {
  const wrong = checkServerIdentity(host, certificate);
  const bare = isIP(host) !== 0 && certificate.subjectaltname === undefined;
  return wrong !== undefined && bare && certificate.subject.CN === host ? undefined : wrong;
}

/**
 * Trusts only one uploaded certificate: the receiver's own or its issuer's. The certificate that the receiver presents
 * must be valid now, and its name must match the host in the URL (as with Telegram).
 */
function ownTrust(certificate: string): Trust {
  const options = { minVersion: 'TLSv1.2' as const, ca: certificate, allowPartialTrustChain: true };
  return {
    secureContext: createSecureContext(options),
    checkHost: checkHostOfOwn,
  };
}

export function trustIn(certificate: string | undefined): Trust {
  return certificate === undefined ? trustInPublic() : ownTrust(certificate);
}
