/**
 * Tests TLS, client addresses and request smuggling with HAProxy and nginx, if these programs are installed. Uses the
 * configurations in infra/proxy/.
 */
import { type RequestOptions, request as secureRequest } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as secureConnect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Balancer, findProgram, proxyKinds, startProxy } from '../support/proxies.js';
import { itemsOf, type Service, startService, type TestBot, type TestUser } from '../support/service.js';

const here = proxyKinds.filter((kind) => findProgram(kind) !== undefined);
const burst = 12;

let service: Service;
let owner: TestUser;
let bot: TestBot;

beforeAll(async () => {
  if (here.length === 0) return;
  service = await startService({
    fronts: 3,
    frontEnv: {
      TRUSTED_PROXIES: '127.0.0.1/32',
      ACCESS_LOG: '1',
      GUESSES_BURST: `${burst}`,
      GUESSES_PER_MINUTE: '1',
    },
  });
  owner = await service.newUser('owner');
  bot = await service.newBot(owner, 'behind');
  await service.openChat(owner, bot);
});
afterAll(() => service?.stop());

interface Told {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

function ask(
  proxy: Balancer,
  path: string,
  more: RequestOptions = {},
  body: readonly Buffer[] = [],
): Promise<Told> {
  return new Promise((resolve, reject) => {
    const sent = secureRequest(`${proxy.url}${path}`, { ca: proxy.ca, agent: false, ...more }, (answer) => {
      const parts: Buffer[] = [];
      answer.on('data', (part) => parts.push(part));
      answer.on('error', reject);
      answer.on('end', () =>
        resolve({
          status: answer.statusCode ?? 0,
          headers: answer.headers,
          text: Buffer.concat(parts).toString(),
        }),
      );
    });
    sent.on('error', reject);
    for (const part of body) sent.write(part);
    sent.end();
  });
}

/**
 * Sends the bytes unchanged. Resolves when the connection has ended, or when it has been idle for a while after the
 * first byte. The result is everything that was received.
 */
function exchange(proxy: Balancer, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const socket = secureConnect({ port: proxy.port, host: '127.0.0.1', ca: proxy.ca }, () =>
      socket.write(bytes),
    );
    const end = () => {
      socket.destroy();
      resolve(text);
    };
    socket.setTimeout(8_000, end);
    socket.on('data', (chunk) => {
      socket.setTimeout(700);
      text += chunk.toString('latin1');
    });
    socket.on('error', end);
    socket.on('close', end);
  });
}

test('`npm run test:proxy` requires that HAProxy and nginx are installed', () => {
  // Without PETREL_TEST_PROXY=1, the tests of a proxy are skipped if the proxy is not installed.
  if (process.env.PETREL_TEST_PROXY === '1') expect(here).toEqual(proxyKinds);
});

test.runIf(here.includes('haproxy'))(
  'an HAProxy process that is being replaced answers one more call on a keep-alive connection',
  async () => {
    const proxy = await startProxy(
      'haproxy',
      service.fronts.map(({ port }) => port),
    );
    let text = '';
    const socket = secureConnect({ port: proxy.port, host: '127.0.0.1', ca: proxy.ca });
    socket.on('data', (chunk) => {
      text += chunk;
    });
    const call = () => socket.write(`GET /bot${bot.token}/getMe HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    try {
      call();
      await expect.poll(() => text).toContain('"ok":true');
      text = '';
      // A reload of HAProxy sends SIGUSR1 to the old process.
      process.kill(proxy.pid, 'SIGUSR1');
      // Waits until the old process refuses connections, which shows that it has handled the signal.
      const refused = () => ask(proxy, '/').catch(({ code }) => code);
      await expect.poll(refused).toBe('ECONNREFUSED');
      call();
      await expect.poll(() => text).toContain('"ok":true');
      expect(text.toLowerCase()).toContain('connection: close');
    } finally {
      socket.destroy();
      await proxy.stop();
    }
  },
);

describe.each(here)('proxy %s', (kind) => {
  let proxy: Balancer;
  beforeAll(async () => {
    proxy = await startProxy(
      kind,
      service.fronts.map(({ port }) => port),
    );
  });
  afterAll(async () => {
    await proxy?.stop();
  });
  const send = (body: object, more: RequestOptions = {}, method = 'sendMessage') =>
    ask(
      proxy,
      `/bot${bot.token}/${method}`,
      { method: 'POST', ...more, headers: { 'content-type': 'application/json', ...more.headers } },
      [Buffer.from(JSON.stringify(body))],
    );

  test('the proxy terminates TLS and returns the answers of fronts unchanged', async () => {
    const me = await ask(proxy, `/bot${bot.token}/getMe`);
    expect([me.status, JSON.parse(me.text).result.id]).toEqual([200, bot.id]);
    expect(me.headers['strict-transport-security']).toContain('max-age');
    const wrong = await ask(proxy, `/bot${bot.token}/nothing`);
    expect([wrong.status, JSON.parse(wrong.text).description]).toEqual([404, 'Not Found: method not found']);
    // A client may escape the colon in a token as %3A. A balancer must pass such a path on unchanged.
    expect((await ask(proxy, `/bot${bot.token.replace(':', '%3A')}/getMe`)).status).toBe(200);
  });

  test('the proxy masks in its log everything that looks like a token', async () => {
    const { token } = bot;
    const escaped = token.replace(':', '%3A');
    const everyCharacter = [...token].map((c) => `%${c.charCodeAt(0).toString(16)}`).join('');
    const targets = [
      `/bot${token}/getMe`,
      `//bot${token}/getMe`,
      `/./bot${token}/getMe`,
      `/x/../bot${token}/getMe`,
      `/%2Fbot${token}/getMe`,
      `%2fbot${token}/getMe`,
      `/bot${escaped}/getMe`,
      `//bot${escaped.toLowerCase()}/getMe`,
      `/Bot${token}/getMe`,
      `/b%6ft${escaped}/getMe`,
      `/x/${everyCharacter}`,
      `/x/${token.replace(':', '%253A')}`,
      `/file/bot${token}/photos/1.jpg`,
      `/file//bot${token}/photos/1.jpg`,
      `/api/chats/${token}`,
      `/api/chats/${token}/${token}`,
      `/api/chats?token=${token}`,
      `/api/chats/${escaped}?token=${escaped}`,
      `http://petrel/bot${token}/getMe`,
      `http://petrel//bot${token}/getMe?${token}`,
    ];
    const lines = [
      ...targets.map((target) => `GET ${target} HTTP/1.1`),
      `GET /bot${token}/getMe HTTP/9.9`,
      `GET /bot${token}/getMe HTTP/1.1 more`,
      `GET /bot${token}/get Me HTTP/1.1`,
      `GET //bot${token}/getMe`,
      `${token} / HTTP/1.1`,
      `${escaped} / HTTP/1.1`,
      `GET\t/bot${token}/getMe HTTP/1.1`,
      `bot${token}`,
    ];
    const headers = ['Host: x', `Referer: https://x/bot${token}/getMe`, `User-Agent: ${token}`];
    for (const line of lines)
      await exchange(proxy, [line, ...headers, 'Connection: close', '', ''].join('\r\n'));
    for (const bad of [`Host : ${token}`, `Host: ${token}\r\nHost: y`, `: ${token}`, token])
      await exchange(proxy, `GET /bot${token}/getMe HTTP/1.1\r\n${bad}\r\nConnection: close\r\n\r\n`);
    await ask(proxy, '/last-of-these');
    await expect.poll(() => proxy.log()).toContain('/last-of-these');
    let log = proxy.log();
    for (let i = 0; i < 3; i++) {
      expect(log).not.toContain(token.slice(-20));
      log = log.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
    }
    await ask(proxy, '/api/chats/17/messages?limit=3');
    await expect.poll(() => proxy.log()).toContain(' /api/chats/17/messages ');
  });

  test('the proxy answers HTTP/1.0, a request without a host, and long heads with the expected status', async () => {
    const many = (count: number) =>
      Array.from({ length: count }, (_, i) => `X-Header-${i}: ${i}\r\n`).join('');
    const path = `/bot${bot.token}/getMe`;
    const heads: readonly (readonly [head: string, haproxy: number, nginx: number])[] = [
      [`GET ${path} HTTP/1.0\r\n\r\n`, 505, 200],
      [`GET ${path} HTTP/1.0\r\nHost: x\r\n\r\n`, 505, 200],
      [`GET ${path} HTTP/1.1\r\n\r\n`, 400, 400],
      [`GET ${path} HTTP/1.1\r\nHost:\r\n\r\n`, 400, 400],
      [`GET ${path} HTTP/1.1\r\nHost: x\r\n${many(35)}\r\n`, 200, 200],
      [`GET ${path} HTTP/1.1\r\nHost: x\r\n${many(50)}\r\n`, 431, 200],
      [`GET ${path} HTTP/1.1\r\nHost: x\r\n${many(95)}\r\n`, 431, 200],
      [`GET ${path} HTTP/1.1\r\nHost: x\r\n${many(300)}\r\n`, 400, 200],
    ];
    for (const [head, ofHaproxy, ofNginx] of heads) {
      const answer = await exchange(proxy, head);
      const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(answer)?.[1]);
      expect([head.slice(-60), status]).toEqual([head.slice(-60), kind === 'haproxy' ? ofHaproxy : ofNginx]);
    }
  });

  test('the proxy drops headers with names that a front cannot read', async () => {
    const inner = `GET /bot${bot.token}/sendMessage?chat_id=${owner.id}&text=hidden HTTP/1.1\r\nHost: x\r\n\r\n`;
    const names = ['', ' ', 'a_b', 'a!b', 'a.b', '~', "'", 'Content_Length', 'Transfer.Encoding'];
    for (const name of names) {
      const answer = await exchange(
        proxy,
        `POST /bot${bot.token}/getMe HTTP/1.1\r\nHost: x\r\n${name}: 1\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
      );
      // There must be one answer: the answer to the outer request, or a refusal by the proxy.
      expect([name, answer.match(/HTTP\/1\.1 (200|400)/g)?.length]).toEqual([name, 1]);
    }
    const history = await itemsOf(service.app(owner, 'GET', `/api/chats/${bot.id}/messages?limit=20`));
    expect(history.map(({ text }: { text: string }) => text)).not.toContain('hidden');
  });

  test("the proxy serves operators' pages and operators' calls only to the configured addresses", async () => {
    const own = await startProxy(
      kind,
      service.fronts.map(({ port }) => port),
      { operators: '127.0.0.9/32' },
    );
    try {
      const paths = [
        '/ops',
        '/ops/',
        '/ops?x',
        '/api/admin',
        '/api/admin/overview',
        '/api/admin/overview?x=1',
      ];
      for (const path of paths) {
        const more = {
          headers: { authorization: `Bearer ${service.adminToken}`, 'x-forwarded-for': '10.0.0.1' },
        };
        const outside = await ask(own, path, { ...more, localAddress: '127.0.0.10' });
        expect([path, outside.status]).toEqual([path, 403]);
        const inside = await ask(own, path, { ...more, localAddress: '127.0.0.9' });
        expect([path, inside.status === 403]).toEqual([path, false]);
      }
      const elsewhere = await ask(own, '/opsx', { localAddress: '127.0.0.10' });
      expect(elsewhere.status).toBe(404);
      const me = await ask(own, `/bot${bot.token}/getMe`, { localAddress: '127.0.0.10' });
      expect(me.status).toBe(200);
    } finally {
      await own.stop();
    }
    // The shipped configuration allows loopback and private addresses for operators.
    const overview = await ask(proxy, '/api/admin/overview', {
      headers: { authorization: `Bearer ${service.adminToken}` },
    });
    expect(overview.status).toBe(200);
  });

  test('the proxy does not serve /metrics, /healthz and /readyz to the public', async () => {
    for (const path of ['/metrics', '/healthz', '/readyz']) {
      const response = await ask(proxy, path);
      expect([path, response.status, JSON.parse(response.text).error_code]).toEqual([path, 404, 404]);
    }
  });

  test('the request id from the proxy appears in the answer and in the log of the front', async () => {
    const response = await ask(proxy, `/bot${bot.token}/getMe`, { headers: { 'x-request-id': 'my-own' } });
    const id = response.headers['x-request-id'] as string;
    expect(id).toMatch(/^[0-9a-f-]{32,36}$/);
    const lines = () => service.fronts.map((front) => front.log()).join('');
    await expect.poll(lines).toContain(`"request":"${id}"`);
    expect(lines()).not.toContain('my-own');
    await expect.poll(() => proxy.log()).toContain(id);
  });

  test('rate limits use the client address that the proxy saw, not an address that the client claims', async () => {
    const localAddress = kind === 'haproxy' ? '127.0.0.77' : '127.0.0.78';
    const guess = (i: number) =>
      ask(proxy, `/bot1:made_up_${i}/getMe`, {
        localAddress,
        headers: { 'x-forwarded-for': `192.0.2.${i}`, 'x-petrel-handover': '1' },
      });
    const statuses: number[] = [];
    for (let i = 0; i < burst + 4; i++) statuses.push((await guess(i)).status);
    expect(statuses).toEqual([...Array(burst).fill(401), ...Array(4).fill(429)]);
    expect((await ask(proxy, '/bot1:made_up/getMe', { localAddress: '127.0.0.9' })).status).toBe(401);
    expect((await ask(proxy, `/bot${bot.token}/getMe`, { localAddress })).status).toBe(200);
  });

  test('no client gets an answer meant for another client, even though clients share connections to fronts', async () => {
    const lane = async (i: number) => {
      for (let n = 0; n < 6; n++) {
        const text = `${kind} ${i}.${n} ${'x'.repeat(1 + ((i * 397 + n * 911) % 3_000))}`;
        const more = n % 2 === 0 ? {} : { headers: { 'transfer-encoding': 'chunked' } };
        const response = await send({ chat_id: owner.id, text }, more);
        expect([response.status, JSON.parse(response.text).result?.text]).toEqual([200, text]);
      }
    };
    // Covers complete bodies, interrupted bodies, and bodies that are refused before they are read.
    const broken = async () => {
      for (let n = 0; n < 6; n++) {
        await new Promise<void>((resolve) => {
          const sent = secureRequest(`${proxy.url}/bot${bot.token}/sendMessage`, {
            ...{ ca: proxy.ca, agent: false, method: 'POST' },
            headers: { 'content-type': 'application/json', 'content-length': 5_000 },
          });
          sent.on('error', () => resolve());
          sent.write(`{"chat_id":${owner.id},"text":"broken`);
          setTimeout(() => sent.destroy(), 15);
          sent.on('close', () => resolve());
        });
      }
    };
    const tooLarge = async () => {
      const response = await send({ chat_id: owner.id, text: 'y'.repeat(1_300_000) });
      expect([response.status, JSON.parse(response.text).ok]).toEqual([413, false]);
    };
    await Promise.all([...Array.from({ length: 8 }, (_, i) => lane(i)), broken(), tooLarge(), broken()]);
    const history = await itemsOf(service.app(owner, 'GET', `/api/chats/${bot.id}/messages?limit=100`));
    const texts = history.map(({ text }: { text: string }) => text.slice(0, 8));
    expect(texts.filter((text: string) => /broken|yyy/.test(text))).toEqual([]);
    expect(new Set(texts.filter((text: string) => text.startsWith(kind))).size).toBeGreaterThan(0);
  });

  test('the proxy runs no request that is hidden in the ambiguous body of another request', async () => {
    const inner = `GET /bot${bot.token}/sendMessage?chat_id=${owner.id}&text=smuggled HTTP/1.1\r\nHost: x\r\n\r\n`;
    const path = `POST /bot${bot.token}/getMe HTTP/1.1\r\nHost: x\r\n`;
    const attacks = [
      `${path}Content-Length: ${inner.length + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
      `${path}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n${inner}`,
      `${path}Content-Length: 0\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
      `${path}Transfer-Encoding : chunked\r\nContent-Length: ${inner.length}\r\n\r\n${inner}`,
      `${path}Content-Length: ${inner.length}\r\n\r\n${inner}`,
    ];
    for (const attack of attacks) await exchange(proxy, attack);
    // Sent alone, the inner request must be run once. This shows that the request itself is valid.
    const plain = await exchange(proxy, inner.replace('smuggled', 'asked').repeat(1));
    expect(plain.match(/HTTP\/1\.1 200/g)).toHaveLength(1);
    const history = await itemsOf(service.app(owner, 'GET', `/api/chats/${bot.id}/messages?limit=20`));
    const texts: string[] = history.map(({ text }: { text: string }) => text);
    expect(texts).toContain('asked');
    // The HTTP standard allows a proxy to repair the first attack instead of refusing it. Even then, no front may run
    // the inner request.
    expect(texts.filter((text) => text === 'smuggled').length).toBeLessThanOrEqual(0);
  });

  test('while no front is up, the proxy answers in the format of the service and logs no token', async () => {
    const nowhere = await startProxy(kind, [1, 1, 1]);
    try {
      await sleep(kind === 'haproxy' ? 1_000 : 0);
      const response = await ask(nowhere, `/bot${bot.token}/getMe`);
      expect(response.headers['content-type']).toBe('application/json');
      expect(JSON.parse(response.text)).toMatchObject({ ok: false, error_code: response.status });
      expect([502, 503]).toContain(response.status);
      for (const one of [nowhere, proxy]) {
        await expect.poll(() => one.log()).toContain('/bot***');
        expect(one.log()).not.toContain(bot.token.slice(-20));
      }
    } finally {
      await nowhere.stop();
    }
  });
});
