/** Makes the certificate of the bench's webhook receiver: self-signed for loopback, valid for one run. */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import forge from 'node-forge';

export interface Certificate {
  /** PEM */
  readonly key: string;
  /** PEM */
  readonly cert: string;
}

const day_ms = 86_400_000;

export function makeCertificate(): Certificate {
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const key = pair.privateKey.export({ type: 'pkcs1', format: 'pem' }).toString();
  const own = forge.pki.privateKeyFromPem(key);
  const made = forge.pki.createCertificate();
  made.publicKey = forge.pki.setRsaPublicKey(own.n, own.e);
  made.serialNumber = `01${randomBytes(8).toString('hex')}`;
  made.validity.notBefore = new Date(Date.now() - day_ms);
  made.validity.notAfter = new Date(Date.now() + day_ms);
  const name = [{ name: 'commonName', value: 'localhost' }];
  made.setSubject(name);
  made.setIssuer(name);
  made.setExtensions([
    { name: 'basicConstraints', cA: false, critical: true },
    { name: 'subjectAltName', altNames: [{ type: 7, ip: '127.0.0.1' }] },
  ]);
  made.sign(own, forge.md.sha256.create());
  return { key, cert: forge.pki.certificateToPem(made) };
}
