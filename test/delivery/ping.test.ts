/** Tests pings of webhooks with real receivers: what is sent, what the owner sees, and the limits. */
import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { Webhook as StandardWebhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { deliveryLimits as limits } from '../../src/delivery/limits.js';
import { makeGuard } from '../../src/delivery/outbound/guard.js';
import { makeResolver } from '../../src/delivery/outbound/resolver.js';
import { receiverOf, Sender } from '../../src/delivery/outbound/send.js';
import { errorMessageOf } from '../../src/delivery/outcome.js';
import { createPings, type PingOptions } from '../../src/delivery/ping.js';
import type { Bot } from '../../src/store/core/control.js';
import type { Webhook } from '../../src/store/webhooks/webhooks.js';
import { systemTime } from '../../src/time.js';
import { ping as pingSchema } from '../../src/wire/webhook_results.js';
import { makeCertificate } from '../support/certificates.js';
import { startNameServer } from '../support/name_server.js';
import { startListener } from '../support/receivers.js';
import { VirtualTime } from '../support/virtual_time.js';
import { body, certificate, headers, type OnFinished, receive } from './fixture.js';

const signing = [
  'whsec_bm93IGFuZCBmb3IgdGhlIG5leHQgdGhpcnR5',
  'whsec_YmVmb3JlIGl0IHdhcyByb3RhdGVkLCBhIHdoaWxl',
];
const bot = { id: 100_001, owner: 5, token: 'hash', state: undefined } as unknown as Bot;
const named = (id: number) => ({ ...bot, id });

const webhook = (url: string, more: Partial<Webhook> = {}): Webhook => ({
  ...{ url, secretToken: 'told-to-nobody', certificate: certificate.cert, address: null },
  ...{ maxConnections: 10, version: 1, signing, ...more },
});

const guardOf = (allow: readonly string[], servers?: readonly string[]) =>
  makeGuard({ allow, resolver: makeResolver(servers ? { servers, waitMs: 500 } : {}) });
const loopback = guardOf(['127.0.0.0/8', '::1/128']);

function pingsFor(options: Partial<PingOptions> = {}) {
  const pings = createPings({
    ...{ guard: loopback, signer: { service: 'Service' }, time: systemTime, held: () => false },
    ...options,
  });
  return async (to: Webhook, of: Bot = bot, count = () => Promise.resolve()) =>
    pingSchema.parse(await pings.send(of, to, count));
}
const send = pingsFor();

test('a ping is signed like a delivery, is marked as a ping, and contains no update that a library would process', async ({
  onTestFinished,
}) => {
  const seen: Array<{ request: IncomingMessage; body: string }> = [];
  const { receiver } = await receive(onTestFinished, (request, response, received) => {
    seen.push({ request, body: received.toString() });
    response.end();
  });
  const now = Date.now() / 1_000;
  const shown = await send(webhook(`https://127.0.0.1:${receiver.port}/hook?a=1`));
  expect(seen).toHaveLength(1);
  const [{ request, body: sent }] = seen as [(typeof seen)[number]];
  expect([request.method, request.url]).toEqual(['POST', '/hook?a=1']);
  const got = request.headers as Record<string, string>;
  for (const secret of signing) expect(new StandardWebhook(secret).verify(sent, got)).toBeDefined();
  expect(got).toMatchObject({
    ...{ 'content-type': 'application/json', 'x-service-ping': '1' },
    'x-service-signature': createHmac('sha256', 'told-to-nobody').update(sent).digest('hex'),
    'x-service-bot-api-secret-token': 'told-to-nobody',
    'x-telegram-bot-api-secret-token': 'told-to-nobody',
    'webhook-id': expect.stringMatching(/^100001-ping-\d{13}$/),
  });
  const { update_id, ping, ...rest } = JSON.parse(sent);
  expect([update_id, rest]).toEqual([0, {}]);
  expect(ping).toEqual({ bot_id: bot.id, date: Number(got['webhook-timestamp']) });
  expect(Math.abs(ping.date - now)).toBeLessThan(10);
  // The ping’s result lists the sent headers in the order in which they were sent.
  const { rawHeaders } = request;
  expect(shown.request.body).toBe(sent);
  expect(shown.request.headers.map(({ name }) => name)).toEqual(rawHeaders.filter((_, i) => i % 2 === 0));
  const hidden = /signature|token/i;
  expect(shown.request.headers.map(({ value }) => value)).toEqual(
    rawHeaders.flatMap((name, i) => (i % 2 === 1 ? [] : [hidden.test(name) ? null : rawHeaders[i + 1]])),
  );
  expect(shown.request.headers.filter(({ value }) => value === null)).toHaveLength(4);
});

test('the user information of a webhook URL is sent, but never shown, even if the receiver repeats this information', async ({
  onTestFinished,
}) => {
  let got: string | undefined;
  const { receiver } = await receive(onTestFinished, (request, response) => {
    got = request.headers.authorization;
    response.end(`got ${got}`);
  });
  const shown = await send(webhook(`https://user:password@127.0.0.1:${receiver.port}/`));
  expect(got).toBe('Basic dXNlcjpwYXNzd29yZA==');
  expect(shown.request.headers).toContainEqual({ name: 'Authorization', value: null });
  expect(shown.answer?.body).toMatch(/^got Basic /);
  expect(shown.answer?.body).not.toContain('dXNlcjpwYXNzd29yZA');
});

test('the owner sees the status, the headers and the body of the answer, and the time of each step', async ({
  onTestFinished,
}) => {
  const { receiver } = await receive(onTestFinished, (_, response) => {
    response.writeHead(418, { 'X-One': 'a', 'Set-Cookie': ['b=1', 'c=2'] }).end('{"fine":"ä"}');
  });
  const shown = await send(webhook(`https://localhost:${receiver.port}/`));
  expect(shown).toMatchObject({
    ...{ delivered: false, status: 418, error: "Wrong response from the webhook: 418 I'm a Teapot" },
    answer: { body: '{"fine":"ä"}', truncated: false, omitted_headers: 0 },
  });
  expect(shown.answer?.headers).toEqual(
    expect.arrayContaining([
      { name: 'x-one', value: 'a' },
      { name: 'set-cookie', value: 'b=1' },
      { name: 'set-cookie', value: 'c=2' },
    ]),
  );
  const { resolve_ms = -1, connect_ms = -1, tls_ms = -1, answer_ms = -1 } = shown.times;
  expect(Math.min(resolve_ms, connect_ms, tls_ms, answer_ms)).toBeGreaterThanOrEqual(0);
  expect(Math.abs(resolve_ms + connect_ms + tls_ms + answer_ms - shown.latency_ms)).toBeLessThan(50);
});

test('secrets in the answer are masked', async ({ onTestFinished }) => {
  const { receiver } = await receive(onTestFinished, ({ headers: got, url }, response) => {
    const told = [got['x-service-bot-api-secret-token'], url, ...signing].join(' ');
    response.writeHead(200, { 'X-Told': told }).end(`${'x'.repeat(2_040)}${told}`);
  });
  const shown = await send(webhook(`https://127.0.0.1:${receiver.port}/path-of-a-secret`));
  const text = JSON.stringify(shown);
  for (const secret of ['told-to-nobody', 'path-of-a-secret', ...signing]) expect(text).not.toContain(secret);
  expect(shown.answer?.headers).toContainEqual({
    name: 'x-told',
    value: expect.stringMatching(/^\*{14} \*{17} \*+ \*+$/),
  });
  expect(shown.answer?.body).toBe(`${'x'.repeat(2_040)}${'*'.repeat(8)}`);
});

describe('the size of the answer that a ping shows is limited', () => {
  test('the owner sees 2 KiB of an endless answer, and the connection is closed', async ({
    onTestFinished,
  }) => {
    const { receiver } = await receive(onTestFinished, (_, response) => {
      const fill = () => {
        while (response.write(Buffer.alloc(16_384, 'ä')));
      };
      response.on('drain', fill);
      fill();
    });
    const shown = await send(webhook(`https://127.0.0.1:${receiver.port}/`));
    expect(shown).toMatchObject({ delivered: true, status: 200, answer: { truncated: true } });
    expect(shown.answer?.body).toBe('ä'.repeat(1_024));
    await expect.poll(() => receiver.open()).toBe(0);
  });

  test.for([
    [2_048, false],
    [2_049, true],
  ] as const)('an answer of %i bytes is truncated: %s', async ([bytes, truncated], { onTestFinished }) => {
    const { receiver } = await receive(onTestFinished, (_, response) => response.end('a'.repeat(bytes)));
    const { answer } = await send(webhook(`https://127.0.0.1:${receiver.port}/`));
    expect(answer).toMatchObject({ body: 'a'.repeat(2_048), truncated });
  });

  test('the owner sees at most 50 headers, with at most 4 KiB in total', async ({ onTestFinished }) => {
    const { receiver } = await receive(onTestFinished, (request, response) => {
      const count = request.url === '/many' ? 70 : 7;
      const value = 'v'.repeat(count === 7 ? 1_000 : 1);
      for (let n = 0; n < count; n++) response.setHeader(`x-${n}`, value);
      response.sendDate = false;
      response.end();
    });
    const sizes = async (path: string) => {
      const { answer } = await send(webhook(`https://127.0.0.1:${receiver.port}/${path}`));
      return [answer?.headers.filter(({ name }) => name.startsWith('x-')).length, answer?.omitted_headers];
    };
    // An answer at /many has 73 headers: the 70 headers set above, and three that the receiver’s HTTP server adds.
    expect(await sizes('many')).toEqual([50, 23]);
    expect(await sizes('large')).toEqual([4, 3]);
  });
});

describe('a failed ping shows the same error as a failed delivery', () => {
  const other = makeCertificate({ addresses: ['127.0.0.1'], freshKey: true });
  const expired = makeCertificate({ addresses: ['127.0.0.1'], validTo: new Date(Date.now() - 1_000) });
  const talking = (talk: (socket: Socket) => void) => async (onTestFinished: OnFinished) => {
    const listener = await startListener(talk);
    onTestFinished(() => listener.close());
    return `https://127.0.0.1:${listener.port}/`;
  };
  const showing = (shown: typeof other) => async (onTestFinished: OnFinished) =>
    `https://127.0.0.1:${(await receive(onTestFinished, undefined, shown)).receiver.port}/`;
  const answering = (text: string) => async (onTestFinished: OnFinished) => {
    const { receiver } = await receive(onTestFinished, ({ socket }) => void socket.end(text));
    return `https://127.0.0.1:${receiver.port}/`;
  };

  test.for<
    [
      what: string,
      start: (onTestFinished: OnFinished) => string | Promise<string>,
      error: string,
      steps: readonly string[],
      anchor?: string,
    ]
  >([
    ['a private address', () => 'https://10.0.0.1/', 'IP address 10.0.0.1 is reserved', []],
    ['a name with a private address', () => 'https://inside.test/', 'IP address 192.168.1.1 is reserved', []],
    ['a refused port', () => 'https://127.0.0.1:6379/', 'Port 6379 is not allowed', []],
    [
      'an unknown name',
      () => 'https://unknown.test/',
      'Failed to resolve host: Name or service not known',
      [],
    ],
    ['nobody listens', () => 'https://127.0.0.1:2/', 'Connection refused', ['resolve_ms']],
    [
      'no TLS',
      talking((socket) => socket.end('SSH-2.0\r\n')),
      'SSL error: handshake failed',
      ['resolve_ms', 'connect_ms'],
    ],
    [
      'another certificate than the uploaded one',
      showing(other),
      'SSL error: self-signed certificate',
      ['resolve_ms', 'connect_ms'],
    ],
    [
      'an expired certificate',
      showing(expired),
      'SSL error: certificate has expired',
      ['resolve_ms', 'connect_ms'],
      expired.cert,
    ],
    [
      'no answer',
      answering(''),
      'Connection closed before the answer was complete',
      ['resolve_ms', 'connect_ms', 'tls_ms'],
    ],
    [
      'no HTTP',
      answering('hello\r\n\r\n'),
      'Wrong response from the webhook: not an HTTP answer',
      ['resolve_ms', 'connect_ms', 'tls_ms'],
    ],
    [
      'half an answer',
      answering('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'),
      'Connection closed before the answer was complete',
      ['resolve_ms', 'connect_ms', 'tls_ms'],
    ],
    [
      'a large head',
      answering(`HTTP/1.1 200 OK\r\nX-Large: ${'x'.repeat(17_000)}\r\n\r\n`),
      'Wrong response from the webhook: header is too large',
      ['resolve_ms', 'connect_ms', 'tls_ms'],
    ],
  ])('%s', async ([, start, error, steps, anchor = certificate.cert], { onTestFinished }) => {
    const names = await startNameServer();
    onTestFinished(() => names.close());
    names.set('inside.test', ['192.168.1.1']);
    const guard = guardOf(['127.0.0.0/8'], [names.address]);
    const url = await start(onTestFinished);
    const shown = await pingsFor({ guard })(webhook(url, { certificate: anchor }));
    expect(shown).toMatchObject({ delivered: false, status: null, error, answer: null });
    expect(Object.keys(shown.times)).toEqual(steps);
    const sender = new Sender({ guard });
    onTestFinished(() => sender.close());
    expect(errorMessageOf(await sender.send(receiverOf(url, anchor), headers, body))).toBe(error);
  });
});

describe('a ping ends after ten seconds', () => {
  const late = async (url: string, isOpen: () => boolean) => {
    const time = new VirtualTime();
    const ending = pingsFor({ time })(webhook(url));
    await expect.poll(isOpen).toBe(true);
    await time.advance(limits.webhook_ping_ms_max - 1);
    expect(await Promise.race([ending, 'open'])).toBe('open');
    await time.advance(1);
    const shown = await ending;
    expect(shown).toMatchObject({ delivered: false, latency_ms: 10_000 });
    expect(time.timers).toBe(0);
    return shown;
  };

  test('a ping ends after ten seconds if the receiver never answers', async ({ onTestFinished }) => {
    const { receiver } = await receive(onTestFinished, () => {});
    const shown = await late(`https://127.0.0.1:${receiver.port}/`, () => receiver.requests() === 1);
    expect(shown).toMatchObject({ status: null, error: 'Read timeout expired', answer: null });
    await expect.poll(() => receiver.open()).toBe(0);
  });

  test.for([
    [200, { status: null, error: 'Read timeout expired', answer: null }],
    [500, { status: 500, answer: { body: expect.stringMatching(/^\.+$/), truncated: true } }],
  ] as const)('a receiver that answers %i byte by byte', async ([status, expected], { onTestFinished }) => {
    let bytes = 0;
    const { receiver } = await receive(onTestFinished, (_, response) => {
      response.writeHead(status);
      const drip = setInterval(() => response.write('.', () => bytes++), 1);
      response.on('close', () => clearInterval(drip));
    });
    expect(await late(`https://127.0.0.1:${receiver.port}/`, () => bytes > 20)).toMatchObject(expected);
    await expect.poll(() => receiver.open()).toBe(0);
  });

  test('a ping ends after ten seconds if the receiver does not finish the TLS handshake', async ({
    onTestFinished,
  }) => {
    const listener = await startListener();
    onTestFinished(() => listener.close());
    const shown = await late(`https://127.0.0.1:${listener.port}/`, () => listener.open() === 1);
    expect(shown).toMatchObject({ status: null, error: 'Connection timed out', answer: null });
    await expect.poll(() => listener.open()).toBe(0);
  });
});

describe('a refused ping sends nothing', () => {
  const refusal = (kind: string) => expect.objectContaining({ kind });

  test('a bot has at most one ping in flight, and a process has at most sixteen pings in flight', async ({
    onTestFinished,
  }) => {
    const answers: Array<() => void> = [];
    const { receiver } = await receive(onTestFinished, (_, response) => {
      answers.push(() => response.end());
    });
    const to = webhook(`https://127.0.0.1:${receiver.port}/`);
    const own = pingsFor();
    const open = [own(to)];
    await expect(own(to)).rejects.toEqual(refusal('too_many_requests'));
    for (let id = 1; id < limits.webhook_pings_max; id++) open.push(own(to, named(id)));
    let counted = 0;
    const count = async () => void counted++;
    await expect(own(to, named(99), count)).rejects.toEqual(refusal('too_many_requests'));
    expect(counted).toBe(0);
    await expect.poll(() => answers.length).toBe(limits.webhook_pings_max);
    for (const answer of answers) answer();
    for (const { delivered } of await Promise.all(open)) expect(delivered).toBe(true);
    const again = own(to);
    await expect.poll(() => answers.length).toBe(limits.webhook_pings_max + 1);
    answers.at(-1)?.();
    expect((await again).delivered).toBe(true);
  });

  test('a ping is refused during a drill, and for a bot that is suspended or blocked', async ({
    onTestFinished,
  }) => {
    const { receiver } = await receive(onTestFinished);
    const to = webhook(`https://127.0.0.1:${receiver.port}/`);
    const paused = refusal('deliveries_paused');
    await expect(pingsFor({ held: () => true })(to)).rejects.toEqual(paused);
    await expect(send(to, { ...bot, state: 'suspended' })).rejects.toEqual(paused);
    await expect(send(to, { ...bot, token: '' })).rejects.toEqual(paused);
    const own = pingsFor();
    await expect(own(to, bot, () => Promise.reject(new Error('counted')))).rejects.toThrow('counted');
    expect(receiver.connections()).toBe(0);
    // A refused ping does not count as in flight.
    expect((await own(to)).delivered).toBe(true);
  });
});
