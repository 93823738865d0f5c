/** A service that accepts reports of leaked tokens, a partner who signs them, and thousands of bots. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { request } from 'undici';
import { readConfig } from '../../src/config/config.js';
import { makeToken } from '../../src/rules/token.js';
import { createSecrets } from '../../src/store/core/secrets.js';
import { makeCertificate } from '../support/certificates.js';
import { type Receiver, startReceiver } from '../support/receivers.js';
import { temporaryFolder } from '../support/servers.js';
import { type Answer, type Service, startService } from '../support/service.js';

export interface Partner {
  readonly id: string;
  readonly key: KeyObject;
  readonly pem: string;
}

export function makePartner(id: string, curve = 'P-256'): Partner {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: curve });
  return { id, key: privateKey, pem: publicKey.export({ type: 'spki', format: 'pem' }).toString() };
}

export const signatureOf = ({ key }: Partner, body: string): string =>
  sign('sha256', Buffer.from(body), { key, dsaEncoding: 'der' }).toString('base64');

export interface LeaksWorld {
  readonly service: Service;
  show(...partners: Partner[]): void;
  /** The number of times that the service fetched the partners' keys. */
  readonly fetched: () => number;
  post(body: string, keyId: string, signature: string, front?: number): Promise<Answer>;
  report(partner: Partner, items: unknown, front?: number): Promise<Answer>;
  manyBots(owner: number, count: number): Promise<Array<{ readonly id: number; readonly token: string }>>;
  query(text: string, params?: readonly unknown[]): Promise<Array<Record<string, unknown>>>;
  close(): Promise<void>;
}

export async function startLeaksWorld(): Promise<LeaksWorld> {
  const certificate = makeCertificate({ names: ['localhost'], authority: true });
  let shown: readonly Partner[] = [];
  let fetched = 0;
  const keyServer: Receiver = await startReceiver(certificate, (_, response) => {
    fetched++;
    const listed = shown.map(({ id, pem }) => ({ key_identifier: id, key: pem, is_current: true }));
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ public_keys: listed }));
  });
  const folder = temporaryFolder();
  const trusted = join(folder, 'trusted.pem');
  writeFileSync(trusted, certificate.cert);
  const service = await startService({
    combined: true,
    fronts: 2,
    extraEnv: { WEBHOOK_ALLOW_CIDRS: '127.0.0.0/8', GUESSES_BURST: '0' },
    frontEnv: {
      NODE_EXTRA_CA_CERTS: trusted,
      LEAK_REPORT_KEYS: `https://localhost:${keyServer.port}/keys`,
      LEAK_REPORT_KEY_HEADER: 'X-Partner-Key',
    },
  });
  const client = new pg.Client(service.databaseUrl);
  await client.connect();
  const query: LeaksWorld['query'] = async (text, params = []) =>
    (await client.query(text, [...params])).rows;

  const post: LeaksWorld['post'] = async (body, keyId, signature, front = 0) => {
    const answer = await request(`${service.fronts[front]?.url}/api/leaks/report`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-partner-key': keyId,
        'github-public-key-signature': signature,
      },
      body,
    });
    return { status: answer.statusCode, headers: answer.headers, body: await answer.body.json() };
  };

  return {
    service,
    show(...partners) {
      shown = partners;
    },
    fetched: () => fetched,
    post,
    report(partner, items, front) {
      const body = JSON.stringify(items);
      return post(body, partner.id, signatureOf(partner, body), front);
    },
    async manyBots(owner, count) {
      const { TOKEN_PEPPER = [], TOKEN_KEYS = [] } = readConfig(service.env);
      const secrets = createSecrets(TOKEN_PEPPER, TOKEN_KEYS);
      const ids = await query("select nextval('ids')::int as id from generate_series(1, $1)", [count]);
      const bots = ids.map(({ id }) => ({
        id: id as number,
        token: makeToken('bot', id as number, randomBytes(32)),
      }));
      await query(
        `insert into bots (id, owner_id, username, name, token_hmac, token_box)
           select id, $4, 'many_' || id || '_bot', 'Many', hmac, box
             from unnest($1::bigint[], $2::bytea[], $3::bytea[]) as made(id, hmac, box)`,
        [
          bots.map(({ id }) => id),
          bots.map(({ token }) => secrets.lookup(token)),
          bots.map(({ id, token }) => secrets.seal(token, `bot:${id}`)),
          owner,
        ],
      );
      return bots;
    },
    query,
    async close() {
      await client.end();
      await service.stop();
      await keyServer.close();
    },
  };
}
