/** Which certificates a receiver may show: those of the public authorities, or the one that was uploaded for the bot. */
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { checkServerIdentity, createSecureContext, type PeerCertificate, type SecureContext } from 'node:tls';
import { fail } from '../../errors.js';
import { limits } from '../../limits.js';

const blocks = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Reads an uploaded certificate: one in PEM, or up to `limits.webhook_certificates_max`. Gives the PEM of these alone, so that nothing that stood beside them
 * (a private key, by mistake) is kept. Errors: `certificate_too_big`, `certificate_invalid` (behaviour §10).
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

/** What a connection must prove. */
export interface Trust {
  readonly secureContext: SecureContext;
  /** undefined if the certificate is one of this host, else the reason */
  checkHost(host: string, certificate: PeerCertificate): Error | undefined;
}

/** The authorities that Node trusts; operators add theirs with NODE_EXTRA_CA_CERTS. */
const publicTrust: Trust = {
  secureContext: createSecureContext({ minVersion: 'TLSv1.2' }),
  checkHost: checkServerIdentity,
};

/**
 * A certificate for a bare address often has it as common name only, as the Telegram guide to self-signed certificates makes
 * it. Node takes a common name for host names alone; for an anchor that its owner uploaded it holds for addresses too.
 */
function checkHostOfOwn(host: string, certificate: PeerCertificate): Error | undefined {
  const wrong = checkServerIdentity(host, certificate);
  const bare = isIP(host) !== 0 && certificate.subjectaltname === undefined;
  return wrong !== undefined && bare && certificate.subject.CN === host ? undefined : wrong;
}

/**
 * Trust in one uploaded certificate and nothing else, be it the receiver's own (self-signed or not) or that of its issuer.
 * The certificate must be valid now, and its name must be the URL's host: Telegram asks the same.
 */
function ownTrust(certificate: string): Trust {
  const options = { minVersion: 'TLSv1.2' as const, ca: certificate, allowPartialTrustChain: true };
  return {
    secureContext: createSecureContext(options),
    checkHost: checkHostOfOwn,
  };
}

/** The trust of a webhook: `certificate` is what `readCertificate` gave. */
export function trustIn(certificate: string | undefined): Trust {
  return certificate === undefined ? publicTrust : ownTrust(certificate);
}
