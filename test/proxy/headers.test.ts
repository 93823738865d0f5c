/**
 * Checks the nginx configuration, which forwards only listed headers. The configuration must forward all headers that
 * fronts read.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');

/** nginx sends these headers itself. */
const ofNginx = ['content-length', 'transfer-encoding'];

test('nginx forwards every header that a front reads', () => {
  const known = [...read('src/http/head.ts').matchAll(/^ {4}case '([a-z-]+)':/gm)].map(([, name]) => name);
  const forwarded = [...read('infra/proxy/nginx.conf').matchAll(/proxy_set_header (\S+) /g)].map(([, name]) =>
    name?.toLowerCase(),
  );
  expect(known).toContain('x-service-consumer');
  expect(known.filter((name) => !forwarded.includes(name) && !ofNginx.includes(name as string))).toEqual([]);
});
