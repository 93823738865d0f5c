import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { receiverOf } from '../../src/delivery/outbound/send.js';
import { readCertificate } from '../../src/delivery/outbound/trust.js';
import { ApiError } from '../../src/errors.js';
import { limits } from '../../src/limits.js';
import { type Certificate, makeCertificate } from '../support/certificates.js';
import { body, headers, type OnFinished, receive, said, senderFor } from './fixture.js';

const day = 86_400_000;
const address = ['127.0.0.1'];
const authority = makeCertificate({ commonName: 'Authority', authority: true });
const middle = makeCertificate({ commonName: 'Middle', authority: true, issuer: authority });
const self = makeCertificate({ names: ['localhost'], addresses: address });

async function deliver(
  onTestFinished: OnFinished,
  shown: Certificate,
  anchor: string | undefined,
  host = '127.0.0.1',
): Promise<[string, requests: number]> {
  const { receiver } = await receive(onTestFinished, undefined, shown);
  const to = receiverOf(`https://${host}:${receiver.port}/`, anchor && readCertificate(Buffer.from(anchor)));
  const outcome = said(await senderFor(onTestFinished).send(to, headers, body));
  return [outcome, receiver.requests()];
}

const accepted = ['answered 200', 1];
const refused = (why: string) => [`tls: SSL error: ${why}`, 0];

describe('certificates are uploaded', () => {
  const issued = makeCertificate({ addresses: address, names: ['localhost'], issuer: authority });
  const below = makeCertificate({ addresses: address, issuer: middle });
  const withChain = { ...below, cert: below.cert + middle.cert };

  test.for<[what: string, shown: Certificate, anchor: string, host?: string]>([
    ['self-signed, for its address', self, self.cert],
    ['self-signed, for its name', self, self.cert, 'localhost'],
    [
      'self-signed, marked as an authority',
      ...twice(makeCertificate({ addresses: address, authority: true })),
    ],
    [
      'self-signed, only for server authentication',
      ...twice(makeCertificate({ addresses: address, forServers: true })),
    ],
    ['issued by the uploaded authority', issued, authority.cert],
    ['issued by an authority, itself uploaded', issued, issued.cert],
    ['through a chain to the uploaded authority', withChain, authority.cert],
    ['issued by the uploaded authority in the middle', below, middle.cert],
    ['one of several in the file', self, `${authority.cert}\n# comment\n${self.cert}`],
    ['with its private key beside it in the file', self, `${self.key}\n${self.cert}`],
    ['a name as common name only', ...twice(makeCertificate({ commonName: 'localhost' })), 'localhost'],
    ['an address as common name only', ...twice(makeCertificate({ commonName: '127.0.0.1' }))],
    ['a wildcard', ...twice(makeCertificate({ names: ['*.my.localhost'] })), 'bot.my.localhost'],
  ])('an uploaded certificate is trusted: %s', async ([, shown, anchor, host], { onTestFinished }) => {
    expect(await deliver(onTestFinished, shown, anchor, host)).toEqual(accepted);
  });

  const other = makeCertificate({ addresses: address, freshKey: true });
  const expired = makeCertificate({ addresses: address, validTo: new Date(Date.now() - day / 2) });
  const early = makeCertificate({ addresses: address, validFrom: new Date(Date.now() + day) });
  const stale = makeCertificate({
    commonName: 'Authority',
    authority: true,
    validTo: new Date(Date.now() - 1),
  });
  const foreign = makeCertificate({ names: ['elsewhere.example'], commonName: '127.0.0.1' });
  const name = 'certificate is not valid for the host of the URL';

  test.for<[what: string, shown: Certificate, anchor: string, why: string, host?: string]>([
    ['another key for the same name', other, self.cert, 'self-signed certificate'],
    ['issued by another authority', issued, self.cert, 'unable to get local issuer certificate'],
    [
      'an authority of the same name, another key',
      issued,
      twinOf(authority),
      'certificate signature failure',
    ],
    ['expired', expired, expired.cert, 'certificate has expired'],
    ['not yet valid', early, early.cert, 'certificate is not yet valid'],
    [
      'its authority expired',
      makeCertificate({ addresses: address, issuer: stale }),
      stale.cert,
      'certificate has expired',
    ],
    ['for another name', foreign, foreign.cert, name],
    ['for another name than the host name in the URL', foreign, foreign.cert, name, 'localhost'],
    [
      'for another address',
      ...twice(makeCertificate({ addresses: ['127.0.0.2'], names: ['127.0.0.1'] })),
      name,
    ],
    [
      'an address in the common name beside other names',
      ...twice(makeCertificate({ commonName: '127.0.0.1', names: ['a.b'] })),
      name,
    ],
    [
      'an address as common name, with a host name in the URL',
      ...twice(makeCertificate({ commonName: '127.0.0.1' })),
      name,
      'localhost',
    ],
    [
      'a wildcard two labels deep',
      ...twice(makeCertificate({ names: ['*.localhost'] })),
      name,
      'a.b.localhost',
    ],
  ])(
    'an uploaded certificate is not trusted: %s',
    async ([, shown, anchor, why, host], { onTestFinished }) => {
      expect(await deliver(onTestFinished, shown, anchor, host)).toEqual(refused(why));
    },
  );
});

function twice(certificate: Certificate): [Certificate, string] {
  return [certificate, certificate.cert];
}

function twinOf({ cert }: Certificate): string {
  const twin = makeCertificate({ commonName: 'Authority', authority: true, freshKey: true });
  expect(twin.cert).not.toBe(cert);
  return twin.cert;
}

test('without an uploaded certificate, only public authorities are trusted', async ({ onTestFinished }) => {
  expect(await deliver(onTestFinished, self, undefined)).toEqual(refused('self-signed certificate'));
});

test('a damaged stored certificate is never trusted', async ({ onTestFinished }) => {
  const { receiver, target } = await receive(onTestFinished, undefined, self);
  const sender = senderFor(onTestFinished);
  for (const damaged of ['damaged', self.cert.slice(0, 300)])
    expect(said(await sender.send(receiverOf(target.target.url, damaged), headers, body))).toMatch(
      /^tls: SSL error: /,
    );
  expect(receiver.requests()).toBe(0);
});

test('NODE_TLS_REJECT_UNAUTHORIZED does not disable the verification of receivers', async ({
  onTestFinished,
}) => {
  const before = process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
  try {
    expect(await deliver(onTestFinished, self, undefined)).toEqual(refused('self-signed certificate'));
    const wrong = makeCertificate({ names: ['elsewhere.example'] });
    expect((await deliver(onTestFinished, wrong, wrong.cert))[1]).toBe(0);
  } finally {
    if (before === undefined) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    else process.env.NODE_TLS_REJECT_UNAUTHORIZED = before;
  }
});

test('two bots with one URL and different certificates share no connection', async ({ onTestFinished }) => {
  const { receiver, target } = await receive(onTestFinished, undefined, self);
  const sender = senderFor(onTestFinished);
  const foreign = receiverOf(target.target.url, authority.cert);
  const plain = receiverOf(target.target.url);
  expect(said(await sender.send(target, headers, body))).toBe('answered 200');
  for (const to of [foreign, plain])
    expect(said(await sender.send(to, headers, body))).toMatch(/^tls: SSL error: /);
  expect(said(await sender.send(target, headers, body))).toBe('answered 200');
  expect([receiver.requests(), receiver.connections()]).toEqual([2, 3]);
});

/** Delivers in a separate process, because Node reads its certificate authorities only at its start. */
async function deliverTrusting(extra: string, url: string, anchor: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'petrel-trust-'));
  const file = join(folder, 'extra.pem');
  writeFileSync(file, extra);
  const script = `
    const at = (file) => import(process.argv[1] + file);
    const [{ makeGuard }, { makeResolver }, { Sender, receiverOf }] =
      await Promise.all([at('guard.js'), at('resolver.js'), at('send.js')]);
    const sender = new Sender({ guard: makeGuard({ allow: ['127.0.0.0/8'], resolver: makeResolver() }) });
    const to = receiverOf(process.argv[2], process.argv[3] || undefined);
    const { status, message } = await sender.send(to, {}, Buffer.from('{}'));
    process.stdout.write(message ?? String(status));
    await sender.close();`;
  const built = new URL('../../dist/delivery/outbound/', import.meta.url).href;
  try {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--input-type=module', '-e', script, built, url, anchor],
      { env: { ...process.env, NODE_EXTRA_CA_CERTS: file } },
    );
    return stdout;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('an uploaded certificate replaces all authorities, including those added by the operator', async ({
  onTestFinished,
}) => {
  const issued = makeCertificate({ addresses: address, issuer: authority });
  const { target } = await receive(onTestFinished, undefined, issued);
  const deliveries = [
    deliverTrusting(authority.cert, target.target.url, ''),
    deliverTrusting(authority.cert, target.target.url, self.cert),
    deliverTrusting(self.cert, target.target.url, authority.cert),
  ];
  expect(await Promise.all(deliveries)).toEqual([
    '200',
    'SSL error: unable to get local issuer certificate',
    '200',
  ]);
});

describe('certificates are parsed', () => {
  const textOf = (given: Buffer | string) => {
    try {
      return readCertificate(Buffer.from(given));
    } catch (error) {
      return error instanceof ApiError ? error.message : String(error);
    }
  };
  let normal: string;
  beforeAll(() => {
    normal = readCertificate(Buffer.from(self.cert));
  });

  test('the parser of uploaded certificates keeps only the certificates of a file', () => {
    expect(normal).toMatch(/^-----BEGIN CERTIFICATE-----\n[^-]+-----END CERTIFICATE-----\n$/);
    expect(textOf(`Subject: x\r\n${self.key}${self.cert.replaceAll('\n', '\r\n')}trailing`)).toBe(normal);
    expect(textOf(self.cert + authority.cert)).toBe(normal + textOf(authority.cert));
    expect(textOf(self.cert.repeat(limits.webhook_certificates_max))).not.toMatch(/^Bad/);
    expect(textOf(self.cert.repeat(limits.webhook_certificates_max + 1))).toMatch(/not a valid PEM/);
  });

  const invalid = 'Bad Request: bad webhook: certificate is not a valid PEM certificate';
  const der = Buffer.from(self.cert.replace(/-----[^-]+-----|\s/g, ''), 'base64');
  test.each<[what: string, given: Buffer | string]>([
    ['nothing', ''],
    ['a text', 'certificate'],
    ['DER', der],
    ['a private key', self.key],
    ['a head without an end', self.cert.slice(0, 400)],
    ['a damaged body', self.cert.replace(/[A-Za-z0-9+/]{64}\r?\n/, '')],
    ['an empty body', '-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n'],
    ['a good one and a damaged one', self.cert + self.cert.replace(/[A-Za-z0-9+/]{64}\r?\n/, '')],
  ])('%s is not a certificate', (_, given) => expect(textOf(given)).toBe(invalid));

  test('an uploaded certificate above the size limit is refused', () => {
    const max = limits.webhook_certificate_bytes_max;
    expect(textOf(self.cert.padEnd(max, '\n'))).toBe(normal);
    expect(textOf(self.cert.padEnd(max + 1, '\n'))).toBe('Bad Request: certificate size is too big');
  });
});
