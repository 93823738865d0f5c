import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { freePort } from '../../src/dev/processes.js';
import { EngineError, loadEngine } from '../../src/http/engine.js';
import { listen } from '../../src/http/server.js';
import { limits } from '../../src/limits.js';
import { engine, expectAlive, headOf, isCurrent, RawClient, start } from './fixture.js';

const options = (port: number, shared: boolean) => ({
  engine,
  host: '127.0.0.1',
  port,
  shared,
  handler: () => undefined,
  onFault: () => undefined,
});

test('a port in use is refused, whether a front or another program uses it', async () => {
  const first = await start((request) => request.reply(200, '{}'));
  await expect(listen(options(first.port, false))).rejects.toThrow(`port ${first.port}`);
  await expect(listen(options(first.port, true))).rejects.toThrow(`port ${first.port}`);
  await expectAlive(first.port);
  await first.server.close();
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  await expect(listen(options(port, false))).rejects.toThrow('cannot listen');
  other.close();
});

test('two servers share a port only if both request it', async () => {
  const first = await listen(options(await freePort(), true));
  const second = await listen(options(first.port, true));
  expect(second.port).toBe(first.port);
  await expect(listen(options(first.port, false))).rejects.toThrow('cannot listen');
  await Promise.all([first.close(), second.close()]);
});

test('drain() finishes open requests and ends each connection after its reply', async () => {
  let release = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { server, port } = await start(async (request) => {
    if (request.path === '/late') await released;
    request.reply(200, `"${request.path}"`);
  });
  const late = await new RawClient(port).send(headOf('GET /late'));
  const idle = await new RawClient(port).send(headOf('GET /x'));
  await idle.until(() => idle.statuses.length === 1 && server.openRequests() === 1);
  expect(await server.drain(20)).toBe(1);
  const refused = new RawClient(port);
  await refused.untilClosed();
  await idle.send(headOf('GET /y'));
  await idle.untilClosed();
  expect(idle.statuses).toEqual([200, 200]);
  expect(idle.text).toContain('Connection: close');
  release();
  expect(await server.drain(5_000)).toBe(0);
  await late.untilClosed();
  expect(late.text.endsWith('"/late"')).toBe(true);
  await server.close();
});

test('after close(), a connection that was idle ends after its next reply', async () => {
  const { server, port } = await start((request) => request.reply(200, `"${request.path}"`), {
    quietMs: 5_000,
  });
  const kept = await new RawClient(port).send(headOf('GET /before'));
  await kept.until(() => kept.statuses.length === 1);
  const closed = server.close();
  await sleep(200);
  await kept.send(headOf('GET /after'));
  await kept.untilClosed();
  expect(kept.statuses).toEqual([200, 200]);
  expect(kept.text).toMatch(/Connection: close[\s\S]*"\/after"$/i);
  await closed;
});

test('after leave(), the server still accepts connections, and closes each one after its reply', async () => {
  const { server, port } = await start((request) => request.reply(200, `${request.handover}`));
  server.leave();
  const asked = await new RawClient(port).send(headOf('GET /x', 'X-Petrel-Handover: 1'));
  await asked.untilClosed();
  expect([asked.statuses, asked.text.endsWith('true')]).toEqual([[200], true]);
  expect(asked.text).toContain('Connection: close');
  const plain = await new RawClient(port).send(headOf('GET /x'));
  await plain.untilClosed();
  expect(plain.text.endsWith('false')).toBe(true);
  await server.close();
});

test('close() waits for open requests and slow readers, and then closes idle connections', async () => {
  const body = `"${'x'.repeat(12_000_000)}"`;
  const { server, port } = await start(async (request) => {
    await sleep(50);
    request.reply(200, request.path === '/big' ? body : '{}');
  });
  const idle = await new RawClient(port).send(headOf('GET /x'));
  await idle.until(() => idle.statuses.length === 1);
  const slow = await new RawClient(port).send(headOf('GET /big'));
  await slow.until(() => server.openRequests() === 1);
  slow.socket.pause();
  const begun = Date.now();
  const closed = server.close();
  await sleep(300);
  expect(server.openRequests()).toBe(1);
  slow.socket.resume();
  await Promise.all([closed, server.close()]);
  expect(Date.now() - begun).toBeLessThan(limits.shutdown_ms_max);
  await Promise.all([idle.untilClosed(), slow.untilClosed()]);
  expect(slow.text.length - slow.text.indexOf('\r\n\r\n') - 4).toBe(body.length);
  expect(slow.text).toContain('Connection: close');
});

test('close() ends immediately if no request is open', async () => {
  const { server, port } = await start((request) => request.reply(200, '{}'));
  const idle = await new RawClient(port).send(headOf('GET /x'));
  await idle.until(() => idle.statuses.length === 1);
  const begun = Date.now();
  await server.close();
  await idle.untilClosed();
  expect(Date.now() - begun).toBeLessThan(limits.shutdown_ms_max / 2);
});

/**
 * Returns a `require` that calls a function of the test for each package name in `aliases`. All other modules are
 * loaded as usual.
 */
function requireWith(aliases: Record<string, () => unknown>): NodeJS.Require {
  const real = createRequire(import.meta.url);
  const require = (id: string) => (aliases[id] ? aliases[id]() : real(id));
  return Object.assign(require, { resolve: real.resolve }) as NodeJS.Require;
}

const missing = () => {
  throw Object.assign(new Error('Cannot find module'), { code: 'MODULE_NOT_FOUND' });
};

test('the loaded HTTP engine is native and reports its version', () => {
  expect(engine.name).toMatch(/^@/);
  expect(engine.version).toMatch(/^20\.\d+\.\d+/);
  expect(engine.headBytesMax).toBe(engine.note === undefined ? limits.head_bytes_max : 4096);
});

test('the current HTTP engine is loaded with a maximum head size, which an environment variable can replace', () => {
  const before = process.env.UWS_HTTP_MAX_HEADERS_SIZE;
  const sizes: unknown[] = [];
  const current = () => {
    sizes.push(process.env.UWS_HTTP_MAX_HEADERS_SIZE);
    return missing();
  };
  const load = () =>
    expect(() => loadEngine(requireWith({ 'uws-current': current, 'uws-older': missing }))).toThrow();
  try {
    delete process.env.UWS_HTTP_MAX_HEADERS_SIZE;
    load();
    process.env.UWS_HTTP_MAX_HEADERS_SIZE = '8192';
    load();
  } finally {
    process.env.UWS_HTTP_MAX_HEADERS_SIZE = before;
  }
  expect(sizes).toEqual([`${limits.head_bytes_max}`, '8192']);
});

test.runIf(isCurrent)('a front accepts a head of nearly the maximum size in several reads', async () => {
  const { server, port } = await start((request) => request.reply(200, '{}'));
  const client = await new RawClient(port).send(
    'GET /x HTTP/1.1\r\nHost: petrel\r\nX-Long: ',
    ...Array.from({ length: 12 }, () => 'a'.repeat(5_000)),
    '\r\n\r\n',
  );
  await client.until(() => client.statuses.length === 1);
  expect(client.statuses).toEqual([200]);
  await server.close();
});

test.runIf(process.versions.modules === '115')(
  'if the current HTTP engine needs a newer libc, the older engine is used and a note says so',
  () => {
    const tooNew = () => {
      throw new Error(
        "Error: /lib/libc.so.6: version `GLIBC_2.38' not found (required by /somewhere/uws.node)",
      );
    };
    const loaded = loadEngine(requireWith({ 'uws-current': tooNew }));
    expect(loaded.name).toBe('@trufflesuite/uws-js-unofficial');
    expect(loaded.headBytesMax).toBe(4096);
    expect(loaded.note).toBe('uws-current: it needs glibc 2.38, which is newer than the one of this machine');
  },
);

const noBinary = `it has no binary for Node.js ${process.version} on ${process.platform} ${process.arch}`;

test('the JavaScript fallback of the older HTTP engine is refused at the start', () => {
  const fallback = () => createRequire(import.meta.url)('uws-older/dist/index.js');
  expect(() => loadEngine(requireWith({ 'uws-current': missing, 'uws-older': fallback }))).toThrow(
    new EngineError(
      `no HTTP engine runs here (uws-current: it is not installed; uws-older: ${noBinary}): ` +
        'use Node.js 22 or 24 with glibc 2.38 or newer (Debian 13, Ubuntu 24.04), or Node.js 20',
    ),
  );
});

test('if no HTTP engine can be loaded, the error names every package that failed', () => {
  expect(() => loadEngine(requireWith({ 'uws-current': missing, 'uws-older': missing }))).toThrow(
    'no HTTP engine runs here (uws-current: it is not installed; uws-older: it is not installed): use Node.js',
  );
});

/**
 * Creates a fake package with the name `uws-current`, which loads the real native engine. Returns a `require` that
 * finds this package.
 */
function currentEngineIn(folder: string, packageJson: string): NodeJS.Require {
  const home = join(folder, 'node_modules', 'uws-current');
  mkdirSync(home, { recursive: true });
  const real = JSON.stringify(
    createRequire(import.meta.url).resolve(isCurrent ? 'uws-current' : 'uws-older'),
  );
  writeFileSync(join(home, 'uws.js'), `module.exports = require(${real});`);
  writeFileSync(join(home, 'package.json'), packageJson);
  return createRequire(join(folder, 'main.js'));
}

test.each([
  [
    'whose exports hide its package.json',
    '{"name":"@current/engine","version":"20.57.0","exports":{"require":"./uws.js"}}',
    { name: '@current/engine', version: '20.57.0' },
  ],
  [
    'whose package.json says neither name nor version',
    '{"main":"uws.js"}',
    { name: 'uws-current', version: 'unknown' },
  ],
])('the server loads a package %s', (_, packageJson, expected) => {
  const folder = mkdtempSync(join(tmpdir(), 'petrel-engine-'));
  const loaded = loadEngine(currentEngineIn(folder, packageJson));
  expect(loaded).toMatchObject(expected);
  expect(loaded.note).toBeUndefined();
  expect(loaded.headBytesMax).toBe(limits.head_bytes_max);
  rmSync(folder, { recursive: true });
});
