/** The API reference as a browser gets it: everything is loaded from this host. */
import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { methods } from '../../src/server/methods.gen.js';
import { type Service, startService } from '../support/service.js';

let service: Service;

beforeAll(async () => {
  service = await startService({ frontEnv: { BASE_URL: 'https://bots.example' } });
});
afterAll(() => service?.stop());

async function get(path: string, method: 'GET' | 'HEAD' | 'POST' = 'GET') {
  const { statusCode, headers, body } = await request(service.fronts[0].url + path, { method });
  return { statusCode, type: headers['content-type'], headers, text: await body.text() };
}

test('the whole OpenAPI document is served', async () => {
  const { statusCode, type, text } = await get('/openapi.json');
  expect([statusCode, type]).toEqual([200, 'application/json']);
  const { openapi, paths, servers, info } = JSON.parse(text);
  expect([openapi, servers]).toEqual(['3.1.0', [{ url: 'https://bots.example' }]]);
  expect(info.version).toMatch(/^\d+\.\d+\.\d+/);
  for (const { name } of methods) expect(paths).toHaveProperty([`/bot{token}/${name}`]);
});

test('the reference page loads everything from this host, with the content types that browsers require', async () => {
  const page = await get('/docs');
  expect([page.statusCode, page.type]).toEqual([200, 'text/html; charset=utf-8']);
  const policy = /http-equiv="Content-Security-Policy" content="([^"]+)"/.exec(page.text)?.[1] ?? '';
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/https?:|\*|unsafe-eval/);
  expect(page.text).not.toMatch(/(src|href)="(https?:)?\/\//);
  const loaded = [...page.text.matchAll(/(?:script src|stylesheet" href)="([^"]+)"/g)].map(
    ([, path]) => path,
  );
  expect(loaded).toHaveLength(3);
  for (const path of loaded) {
    const { statusCode, type, text } = await get(`/${path}`);
    const wanted = path?.endsWith('.css') ? 'text/css' : 'text/javascript';
    expect([path, statusCode, type]).toEqual([path, 200, `${wanted}; charset=utf-8`]);
    expect(text.length).toBeGreaterThan(100);
  }
  expect((await get('/docs/swagger-ui-bundle.js')).text).toContain('SwaggerUIBundle');
});

test('the reference page cannot be framed by other sites, and browsers may not guess its content type', async () => {
  for (const path of ['/docs', '/docs/start_viewer.js', '/openapi.json']) {
    expect((await get(path)).headers).toMatchObject({
      'content-security-policy': "frame-ancestors 'none'",
      'x-frame-options': 'DENY',
      'x-content-type-options': 'nosniff',
    });
  }
});

test('other methods are refused, and unknown paths give a 404', async () => {
  expect((await get('/docs', 'HEAD')).statusCode).toBe(200);
  expect((await get('/docs', 'POST')).statusCode).toBe(405);
  for (const path of ['/docs/', '/docs/index.html', '/docs/../main.js', '/docs/reference.js'])
    expect((await get(path)).statusCode).toBe(404);
});
