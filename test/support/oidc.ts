/**
 * Provides a real OpenID Connect provider on this machine. Also simulates a browser that signs in at the provider
 * without drawing pages.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { Provider } from 'oidc-provider';
import { type Dispatcher, request } from 'undici';
import type { Answer, Service } from './service.js';
import { callOpenly } from './sign_in_calls.js';

export const client = { id: 'petrel-of-test', secret: 'a-secret-of-the-client' } as const;

/** Answers a request in place of the provider. Returns false if the provider must answer the request. */
export type Fault = (request: IncomingMessage, response: ServerResponse) => boolean;

export interface TestProvider {
  readonly issuer: string;
  /** The settings of Petrel for this provider. */
  readonly settings: Readonly<Record<string, string>>;
  /** Signs an ID token with the key of the provider, for this client. */
  sign(claims: Readonly<Record<string, unknown>>): Promise<string>;
  /** The paths that were requested. */
  readonly requested: string[];
  /** If this function is not null, it answers requests in place of the provider. Tests set this field. */
  fault: Fault | null;
  close(): Promise<void>;
}

/**
 * Starts the provider. Any login is accepted and becomes the subject of an account. The person's name is the login in
 * capital letters. `namesInToken` is false for a provider that names people only in the answer to `userinfo`.
 */
export async function startProvider(
  baseUrl: string,
  { namesInToken = true, locale = 'ru' } = {},
): Promise<TestProvider> {
  let handle: (request: IncomingMessage, response: ServerResponse) => void = () => undefined;
  const requested: string[] = [];
  const server = createServer((incoming, response) => {
    requested.push(incoming.url?.split('?')[0] ?? '');
    if (!made.fault?.(incoming, response)) handle(incoming, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: client.id,
        client_secret: client.secret,
        redirect_uris: [`${baseUrl}/app`],
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'RS256', use: 'sig', kid: 'one' }] },
    cookies: { keys: ['a key of the test'] },
    claims: { openid: ['sub'], profile: ['name', 'preferred_username', 'locale'] },
    conformIdTokenClaims: !namesInToken,
    pkce: { required: () => true },
    ttl: { AccessToken: 600, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    findAccount: (_, sub) => ({
      accountId: sub,
      claims: () => ({ sub, name: sub.toUpperCase(), preferred_username: sub, locale }),
    }),
  });
  handle = provider.callback();
  const made: TestProvider = {
    issuer,
    settings: {
      OIDC_ISSUER: issuer,
      OIDC_CLIENT_ID: client.id,
      OIDC_CLIENT_SECRET: client.secret,
      OIDC_NAME: 'Example ID',
      OIDC_CREATE_USERS: '1',
      BASE_URL: baseUrl,
    },
    sign: (claims) =>
      new SignJWT({ iss: issuer, aud: client.id, ...claims })
        .setProtectedHeader({ alg: 'RS256', kid: 'one' })
        .setIssuedAt()
        .sign(privateKey),
    requested,
    fault: null,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  return made;
}

/** Returns the `name=value` pairs of the `Set-Cookie` headers of an answer. */
export const cookiesOf = ({ headers }: Pick<Answer, 'headers'>): string[] =>
  [headers['set-cookie'] ?? []].flat().map((line) => line.split(';')[0] as string);

/**
 * Opens the address of a started sign-in, and signs in as `login`. Returns the query with which the provider sends the
 * browser back.
 */
export async function visitProvider(url: string, login: string): Promise<string> {
  const jar = new Map<string, string>();
  let at = url;
  let form: string | null = null;
  for (let step = 0; step < 12; step++) {
    const answer: Dispatcher.ResponseData = await request(at, {
      method: form === null ? 'GET' : 'POST',
      headers: {
        cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; '),
        ...(form === null ? {} : { 'content-type': 'application/x-www-form-urlencoded' }),
      },
      body: form,
    });
    const text: string = await answer.body.text();
    for (const pair of cookiesOf({ headers: answer.headers })) {
      const [name = '', value = ''] = pair.split(/=(.*)/s);
      if (value === '') jar.delete(name);
      else jar.set(name, value);
    }
    form = null;
    const to = answer.headers.location;
    if (typeof to === 'string') {
      const next = new URL(to, at);
      if (next.origin !== new URL(url).origin) return next.search.slice(1);
      at = next.href;
      continue;
    }
    const action = /<form[^>]* action="([^"]+)"/.exec(text)?.[1];
    if (action === undefined)
      throw new Error(`the provider answered ${answer.statusCode} ${text.slice(0, 500)}`);
    at = new URL(action, at).href;
    const prompt = /name="prompt" value="(\w+)"/.exec(text)?.[1] ?? 'login';
    form = new URLSearchParams({ prompt, login, password: 'x' }).toString();
  }
  throw new Error('the provider did not send the browser back');
}

export interface Started {
  readonly url: string;
  readonly cookie: string;
}

export async function beginSignIn(service: Service, front = 0): Promise<Started> {
  const answer = await callOpenly(service, 'POST', '/api/sign_in/provider', {}, { front });
  if (answer.status !== 200) throw new Error(`answered ${answer.status} ${JSON.stringify(answer.body)}`);
  return { url: answer.body.result.url, cookie: cookiesOf(answer)[0] ?? '' };
}

export const finishSignIn = (service: Service, cookie: string, answer: string, front = 0, agent = '') =>
  callOpenly(
    service,
    'POST',
    '/api/sign_in/session',
    { answer },
    { front, headers: { cookie, 'user-agent': agent } },
  );

/** Runs the whole sign-in as `login`, until the answer with the token of the session. */
export async function signInAs(service: Service, login: string, front = 0, agent = ''): Promise<Answer> {
  const { url, cookie } = await beginSignIn(service, front);
  return finishSignIn(service, cookie, await visitProvider(url, login), front, agent);
}
