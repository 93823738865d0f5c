/** Makes certificates for receivers: valid, self-signed, for another name, or expired. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import forge from 'node-forge';

export interface Certificate {
  /** PEM */
  readonly key: string;
  /** PEM */
  readonly cert: string;
}

export interface CertificateOptions {
  readonly commonName?: string;
  /** DNS names and addresses of the subject alternative name. If empty, the certificate has no such extension. */
  readonly names?: readonly string[];
  readonly addresses?: readonly string[];
  /** The certificate that signs this certificate. If absent, the certificate is self-signed. */
  readonly issuer?: Certificate;
  readonly authority?: boolean;
  readonly validFrom?: Date;
  readonly validTo?: Date;
  readonly forServers?: boolean;
  /** Whether to make a new key. By default all certificates share one key, because making keys is slow. */
  readonly freshKey?: boolean;
}

const day = 86_400_000;

const makeKey = () =>
  generateKeyPairSync('rsa', { modulusLength: 2048 })
    .privateKey.export({ type: 'pkcs1', format: 'pem' })
    .toString();
let sharedKey: string | undefined;

function keyFor(fresh: boolean): string {
  if (fresh) return makeKey();
  sharedKey ??= makeKey();
  return sharedKey;
}

export function makeCertificate(options: CertificateOptions = {}): Certificate {
  const { commonName = 'localhost', names = [], addresses = [], issuer, authority = false } = options;
  const key = keyFor(options.freshKey ?? false);
  const own = forge.pki.privateKeyFromPem(key);
  const made = forge.pki.createCertificate();
  made.publicKey = forge.pki.setRsaPublicKey(own.n, own.e);
  made.serialNumber = `01${randomBytes(8).toString('hex')}`;
  made.validity.notBefore = options.validFrom ?? new Date(Date.now() - day);
  made.validity.notAfter = options.validTo ?? new Date(Date.now() + 30 * day);
  const subject = [{ name: 'commonName', value: commonName }];
  made.setSubject(subject);
  made.setIssuer(
    issuer === undefined ? subject : forge.pki.certificateFromPem(issuer.cert).subject.attributes,
  );
  const altNames = [
    ...names.map((value) => ({ type: 2, value })),
    ...addresses.map((ip) => ({ type: 7, ip })),
  ];
  made.setExtensions([
    { name: 'basicConstraints', cA: authority, critical: true },
    ...(options.forServers === true
      ? [
          { name: 'keyUsage', digitalSignature: true, keyEncipherment: true, critical: true },
          { name: 'extKeyUsage', serverAuth: true },
        ]
      : []),
    ...(altNames.length > 0 ? [{ name: 'subjectAltName', altNames }] : []),
  ]);
  made.sign(issuer === undefined ? own : forge.pki.privateKeyFromPem(issuer.key), forge.md.sha256.create());
  return { key, cert: forge.pki.certificateToPem(made) };
}
