/** Tests the time limit of requests to a slow OpenID Connect provider. */
import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { identityLimits as limits } from '../../src/identity/limits.js';
import { createProviderClient } from '../../src/identity/provider_client.js';
import { VirtualTime } from '../support/virtual_time.js';

type OnFinished = (end: () => Promise<void>) => void;

/** Starts a provider that begins its answers to calls at `slowPath` with `begin`, and never ends these answers. */
async function startSlow(onTestFinished: OnFinished, slowPath: string, begin: (to: ServerResponse) => void) {
  const state = { reached: 0, closed: 0 };
  let issuer = '';
  const answer: RequestListener = ({ url }, response) => {
    if (url === slowPath) {
      state.reached++;
      response.on('close', () => state.closed++);
      begin(response);
      return;
    }
    const endpoint = (name: string) => `${issuer}/${name}`;
    const metadata = {
      ...{ issuer, authorization_endpoint: endpoint('authorize'), token_endpoint: endpoint('token') },
      ...{ userinfo_endpoint: endpoint('userinfo'), jwks_uri: endpoint('keys') },
    };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(metadata));
  };
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const time = new VirtualTime();
  const client = createProviderClient({
    ...{ issuer, clientId: 'petrel', clientSecret: 'secret', redirectUri: 'http://petrel.example/app', time },
  });
  return { client, time, state };
}

const flow = { state: 'state', nonce: 'nonce', verifier: 'v'.repeat(43) };
const silent = () => {};
/** Sends the head and the beginning of an answer. */
const unfinished = (response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'application/json' }).write('{');
};

type Client = ReturnType<typeof createProviderClient>;
const discovery = '/.well-known/openid-configuration';
const redeem = (client: Client) =>
  client.redeem(new URLSearchParams({ code: 'code', state: flow.state }), flow);

test.for<[string, string, (client: Client) => Promise<unknown>, (to: ServerResponse) => void]>([
  ['metadata', discovery, (client) => client.metadata(), silent],
  ['the end of its metadata', discovery, (client) => client.metadata(), unfinished],
  ['tokens', '/token', redeem, silent],
  ['the end of its tokens', '/token', redeem, unfinished],
  ['claims', '/userinfo', (client) => client.userInfo('access', 'subject'), silent],
])(
  'a request fails after five seconds if the provider does not send %s',
  async ([, path, ask, begin], { onTestFinished }) => {
    const { client, time, state } = await startSlow(onTestFinished, path, begin);
    let failure: unknown;
    const asked = ask(client).catch((error: unknown) => {
      failure = error;
    });
    await expect.poll(() => state.reached).toBe(1);
    await time.advance(limits.provider_answer_ms_max - 1);
    expect([failure, state.closed]).toEqual([undefined, 0]);
    await time.advance(1);
    await asked;
    expect(failure).toBeInstanceOf(Error);
    await expect.poll(() => state.closed).toBe(1);
  },
);
