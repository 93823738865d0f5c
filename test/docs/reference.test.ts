/** Tests the documentation site as a browser loads it. The browser must load everything from the Petrel server. */
import { readdirSync, readFileSync } from 'node:fs';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../src/dev/processes.js';
import { openApiDocument } from '../../src/docs/openapi.js';
import { endpoints } from '../../src/endpoints/endpoints.gen.js';
import { methods } from '../../src/methods/methods.gen.js';
import { createRole } from '../support/role_process.js';
import { type Service, startService } from '../support/service.js';

let service: Service;

beforeAll(async () => {
  service = await startService({ combined: true, frontEnv: { BASE_URL: 'https://bots.example' } });
});
afterAll(() => service?.stop());

async function get(path: string, method: 'GET' | 'HEAD' | 'POST' = 'GET') {
  const { statusCode, headers, body } = await request(service.fronts[0].url + path, { method });
  return { statusCode, type: headers['content-type'], headers, text: await body.text() };
}

/**
 * Returns the CPU time in ms that the main thread of a process has used. The load of other processes does not change
 * this time.
 */
const mainThreadMs = (pid: number) =>
  Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;

test.skipIf(process.platform !== 'linux')(
  'the first request for the OpenAPI document or the search index blocks the event loop for less than 80 ms',
  async () => {
    const env = service.env;
    const port = await freePort();
    const front = createRole('front', async () => ({ ...env, PORT: String(port) }));
    await front.start();
    try {
      for (const path of ['/openapi.json', '/docs/search.json']) {
        const before = mainThreadMs(front.pid);
        const { statusCode, body } = await request(`http://127.0.0.1:${port}${path}`);
        expect((await body.text()).length).toBeGreaterThan(10_000);
        expect([path, statusCode]).toEqual([path, 200]);
        const used = mainThreadMs(front.pid) - before;
        expect([path, used < 80]).toEqual([path, true]);
      }
    } finally {
      await front.stop();
    }
  },
);

test('the whole OpenAPI document is served, with the version and the base URL of the service', async () => {
  const { statusCode, type, text } = await get('/openapi.json');
  expect([statusCode, type]).toEqual([200, 'application/json']);
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  const baseUrl = 'https://bots.example';
  const rates = JSON.parse(text).info['x-rates'];
  const wanted = openApiDocument({ methods, endpoints, version, baseUrl, rates });
  expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(wanted)));
  const { openapi, paths, servers, info } = JSON.parse(text);
  expect([openapi, servers]).toEqual(['3.1.0', [{ url: 'https://bots.example' }]]);
  expect(info.version).toMatch(/^\d+\.\d+\.\d+/);
  for (const { name } of methods) expect(paths).toHaveProperty([`/bot{token}/${name}`]);
});

async function crawl(): Promise<Map<string, { text: string; headers: Record<string, unknown> }>> {
  const pages = new Map<string, { text: string; headers: Record<string, unknown> }>();
  const waiting = ['/docs'];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (pages.has(path)) continue;
    const { statusCode, headers, text } = await get(path);
    expect([path, statusCode]).toEqual([path, 200]);
    pages.set(path, { text, headers });
    for (const [, to = ''] of text.matchAll(/<a [^>]*href="(\/docs[^"#]*)/g)) waiting.push(to);
  }
  return pages;
}

test('the documentation site has every guide and decision', async () => {
  const pages = await crawl();
  const guides = readdirSync('infra/docs')
    .filter((name) => name.endsWith('.md'))
    .map((name) => `/docs/${name.replace('.md', '')}`);
  const decisions = readdirSync('infra/decisions').map(
    (name) => `/docs/decisions/${name.replace('.md', '')}`,
  );
  expect([...guides, ...decisions, '/docs/reference'].filter((path) => !pages.has(path))).toEqual([]);
  const broken = [...pages].flatMap(([from, { text }]) =>
    [...text.matchAll(/<a [^>]*href="((?:\/docs[^"#]*)?)(?:#([^"]*))?"/g)]
      .map(([, path, id]) => [path || from, id] as const)
      .filter(([path, id]) => id !== undefined && !pages.get(path)?.text.includes(`id="${id}"`))
      .map(([path, id]) => `${from}: ${path}#${id}`),
  );
  expect(broken).toEqual([]);
});

test.each(['/docs', '/docs/bots', '/docs/reference'])(
  '%s loads everything from this host, from files that browsers may cache for a year',
  async (path) => {
    const page = await get(path);
    expect([page.statusCode, page.type]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.text).not.toMatch(/(src|href)="(https?:)?\/\/(?!\w)/);
    expect(page.text).not.toMatch(/<script(?![^>]* src=)|<style| style=| on\w+=/);
    const loaded = [...page.text.matchAll(/(?:<script[^>]* src|stylesheet" href)="([^"]+)"/g)].map(
      ([, at = '']) => at,
    );
    expect(loaded).toHaveLength(2);
    for (const at of loaded) {
      const { statusCode, type, headers } = await get(at);
      const wanted = at.endsWith('.css') ? 'text/css' : 'text/javascript';
      expect([at, statusCode, type]).toEqual([at, 200, `${wanted}; charset=utf-8`]);
      expect(headers['cache-control']).toBe('public, max-age=31536000, immutable');
    }
  },
);

test('the documentation site forbids framing, scripts of other origins and content sniffing', async () => {
  for (const path of ['/docs', '/docs/reference', '/docs/search.json', '/openapi.json']) {
    const { headers } = await get(path);
    expect(headers).toMatchObject({ 'x-frame-options': 'DENY', 'x-content-type-options': 'nosniff' });
    const policy = String(headers['content-security-policy']);
    for (const part of ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"])
      expect(policy.split('; ')).toContain(part);
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval/);
    expect(policy.includes('unsafe-inline')).toBe(path === '/docs/reference');
  }
});

test.each(['/docs', '/docs/operating', '/docs/search.json', '/openapi.json'])(
  '%s is compressed, and a browser that has a copy gets a 304',
  async (path) => {
    const whole = await get(path);
    for (const [encoding, decode] of [
      ['br', brotliDecompressSync],
      ['gzip', gunzipSync],
    ] as const) {
      const answer = await request(service.fronts[0].url + path, {
        headers: { 'accept-encoding': encoding },
      });
      expect(answer.headers['content-encoding']).toBe(encoding);
      const bytes = Buffer.from(await answer.body.arrayBuffer());
      expect(bytes.length).toBeLessThan(whole.text.length / 2);
      expect(decode(bytes).toString()).toBe(whole.text);
      const again = await request(service.fronts[0].url + path, {
        headers: { 'accept-encoding': encoding, 'if-none-match': String(answer.headers.etag) },
      });
      expect([again.statusCode, await again.body.text()]).toEqual([304, '']);
    }
  },
);

test('the search index of the documentation has every method and endpoint once', async () => {
  const entries = JSON.parse((await get('/docs/search.json')).text) as Array<Record<string, string>>;
  const titles = entries.map(({ title }) => title);
  for (const name of [
    ...methods.map(({ name }) => name),
    ...endpoints.map(({ verb, path }) => `${verb} ${path}`),
  ])
    expect(titles.filter((title) => title === name)).toEqual([name]);
  expect(entries).toContainEqual(
    expect.objectContaining({ title: 'Keeping the token safe', url: '/docs/bots#keeping-the-token-safe' }),
  );
});

test('the documentation site refuses POST, and returns 404 for unknown paths', async () => {
  expect((await get('/docs', 'HEAD')).statusCode).toBe(200);
  expect((await get('/docs', 'POST')).statusCode).toBe(405);
  for (const path of ['/docs/index.html', '/docs/../main.js', '/docs/none', '/docs/guides'])
    expect((await get(path)).statusCode).toBe(404);
});
