/** Tests the loading of pages from real servers, including malicious ones. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { makeGuard } from '../../src/delivery/outbound/guard.js';
import { makeResolver } from '../../src/delivery/outbound/resolver.js';
import { previewLimits as limits } from '../../src/previews/limits.js';
import { loadPreview } from '../../src/previews/load.js';
import { systemTime } from '../../src/time.js';
import { certificate, type OnFinished } from '../delivery/fixture.js';
import { startListener, startReceiver } from '../support/receivers.js';
import { RunningTime } from '../support/running_time.js';

const loopback = makeGuard({ allow: ['127.0.0.0/8', '::1/128'], resolver: makeResolver() });
const html = { 'content-type': 'text/html; charset=utf-8' };
const page = '<title>Found</title>';

type Answer = (request: IncomingMessage, response: ServerResponse, origin: string) => void;

/** Starts a server, and returns a function that loads the preview of one of its pages. */
async function serve(onTestFinished: OnFinished, answer: Answer, more = {}) {
  const requests: IncomingMessage[] = [];
  const receiver = await startReceiver(certificate, (request, response) => {
    requests.push(request);
    answer(request, response, origin);
  });
  onTestFinished(() => receiver.close());
  const origin = `https://127.0.0.1:${receiver.port}`;
  const options = { guard: loopback, time: systemTime, certificate: certificate.cert, ...more };
  return { receiver, requests, origin, load: (path = '/') => loadPreview(`${origin}${path}`, options) };
}

test('a page is requested once, without data about the reader', async ({ onTestFinished }) => {
  const { requests, load, origin } = await serve(onTestFinished, (_, response) =>
    response.writeHead(200, html).end(page),
  );
  expect(await load('/a?b=1')).toEqual({ host: new URL(origin).host, title: 'Found' });
  expect(requests.map(({ method, url }) => [method, url])).toEqual([['GET', '/a?b=1']]);
  const { host, connection, ...others } = requests[0]?.headers ?? {};
  expect(others).toEqual({
    accept: 'text/html,application/xhtml+xml',
    'accept-encoding': 'identity',
    'user-agent': 'PetrelLinkPreview/1.0',
  });
});

test.each([
  ['a picture', 200, { 'content-type': 'image/png' }],
  ['no type', 200, {}],
  ['a type that only begins like HTML', 200, { 'content-type': 'text/html-not' }],
  ['a compressed page', 200, { ...html, 'content-encoding': 'gzip' }],
  ['an error', 404, html],
  ['an empty success', 204, html],
  ['a redirect without a target', 302, html],
  ['a redirect to another protocol', 302, { location: 'file:///etc/passwd' }],
  ['a redirect to HTTP on a port', 302, { location: 'http://127.0.0.1:8080/' }],
  ['a redirect with a password', 302, { location: 'https://a:b@127.0.0.1/' }],
])('%s has no preview', async (_, status, headers) => {
  const finished: Array<() => Promise<void>> = [];
  const { load } = await serve(
    (work) => void finished.push(work),
    (_request, response) =>
      response.writeHead(status, headers as OutgoingHttpHeaders).end(status === 204 ? '' : page),
  );
  expect(await load()).toBeNull();
  for (const work of finished) await work();
});

describe('redirects', () => {
  const chain: Answer = ({ url = '' }, response) => {
    const left = Number(url.slice(1));
    if (left === 0) response.writeHead(200, html).end(page);
    else response.writeHead(302, { location: `/${left - 1}` }).end(page);
  };

  test('redirects are followed up to a limit', async ({ onTestFinished }) => {
    const { requests, load } = await serve(onTestFinished, chain);
    const { preview_redirects_max: max } = limits;
    expect(await load(`/${max}`)).toMatchObject({ title: 'Found' });
    expect(requests).toHaveLength(max + 1);
    expect(await load(`/${max + 1}`)).toBeNull();
    expect(requests).toHaveLength(2 * (max + 1));
  });

  test('no connection is opened for a redirect to an address that is not allowed', async ({
    onTestFinished,
  }) => {
    const inner = await startListener();
    onTestFinished(() => inner.close());
    const guard = makeGuard({ allow: ['127.0.0.1/32'], resolver: makeResolver() });
    const targets = [
      `https://127.0.0.2:${inner.port}/`,
      `https://[::1]:${inner.port}/`,
      `https://[::ffff:127.0.0.2]:${inner.port}/`,
      `https://0x7f000002:${inner.port}/`,
      'https://169.254.169.254/latest/meta-data/',
      'https://127.0.0.1:6379/',
    ];
    const { requests, load } = await serve(
      onTestFinished,
      ({ url = '' }, response) => response.writeHead(301, { location: targets[Number(url.slice(1))] }).end(),
      { guard },
    );
    for (const index of targets.keys()) expect(await load(`/${index}`)).toBeUndefined();
    expect(requests).toHaveLength(targets.length);
    expect(inner.connections()).toBe(0);
  });

  test('the preview shows the host of the page at the end of the redirects', async ({ onTestFinished }) => {
    const { load, receiver } = await serve(onTestFinished, ({ url }, response) => {
      if (url === '/last') response.writeHead(200, html).end(page);
      else response.writeHead(307, { location: `https://localhost:${receiver.port}/last` }).end();
    });
    expect(await load()).toMatchObject({ host: `localhost:${receiver.port}` });
  });
});

test.each([['https://a..example/'], [`https://${'a'.repeat(64)}.example/`], ['https://example.org:0/']])(
  '%s has no preview',
  async (url) => {
    expect(await loadPreview(url, { guard: loopback, time: systemTime })).toBeNull();
  },
);

test('a page cannot be loaded if its certificate is not trusted', async ({ onTestFinished }) => {
  const { load, requests } = await serve(
    onTestFinished,
    (_, response) => response.writeHead(200, html).end(page),
    { certificate: undefined },
  );
  expect(await load()).toBeUndefined();
  expect(requests).toEqual([]);
});

test('an endless page is read up to a limit, and its connection is closed', async ({ onTestFinished }) => {
  let sent = 0;
  const { load, receiver } = await serve(onTestFinished, (_, response) => {
    response.writeHead(200, html).write('<title>Endless</title>');
    const more = () => {
      while (!response.destroyed) {
        sent += 16_384;
        if (!response.write(Buffer.alloc(16_384, 'x'))) break;
      }
    };
    response.on('drain', more);
    more();
  });
  expect(await load()).toMatchObject({ title: 'Endless' });
  await expect.poll(() => receiver.open()).toBe(0);
  // Allows 32 MB above the limit, because the kernel buffers bytes that Petrel has not read.
  expect(sent).toBeLessThan(limits.preview_page_bytes_max + 32 * 1024 * 1024);
});

test('a page cannot be loaded if it arrives too slowly', async ({ onTestFinished }) => {
  const time = new RunningTime();
  const { load, receiver, requests } = await serve(
    onTestFinished,
    (_, response) => {
      response.writeHead(200, html);
      const timer = setInterval(() => response.write('<'), 5);
      response.on('close', () => clearInterval(timer));
    },
    { time },
  );
  const loaded = load();
  await expect.poll(() => requests.length).toBe(1);
  time.skip(limits.preview_ms_max);
  expect(await loaded).toBeUndefined();
  await expect.poll(() => receiver.open()).toBe(0);
});

test('all redirects of a page together have one time limit', async ({ onTestFinished }) => {
  const time = new RunningTime();
  const half = limits.preview_ms_max / 2;
  const { load, requests } = await serve(
    onTestFinished,
    ({ url = '' }, response) => {
      time.skip(half);
      response.writeHead(302, { location: `${url}a` }).end();
    },
    { time },
  );
  expect(await load('/a')).toBeUndefined();
  expect(requests.length).toBeLessThanOrEqual(2);
});

test('a page cannot be loaded if the server does not answer with HTTP', async ({ onTestFinished }) => {
  const { load } = await serve(onTestFinished, (_, response) => {
    response.socket?.end('nothing like HTTP\r\n\r\n');
  });
  expect(await load()).toBeUndefined();
});
