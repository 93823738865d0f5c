/**
 * Tests that Petrel connects to no forbidden name or address. Uses a test name server and listeners, and counts
 * connections with Node's async hooks.
 */
import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import { isIP } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Guard, makeGuard } from '../../src/delivery/outbound/guard.js';
import { makeResolver } from '../../src/delivery/outbound/resolver.js';
import { receiverOf, Sender } from '../../src/delivery/outbound/send.js';
import { type NameServer, startNameServer } from '../support/name_server.js';
import { type Receiver, startListener } from '../support/receivers.js';
import { forbidden } from './addresses.cases.js';

let names: NameServer;
let listener: Receiver;
/**
 * The number of connections that the guarded calls opened or tried to open. Leaves out connections of other test files,
 * whose clients may reconnect in this process.
 */
let made = 0;
const guarded = new AsyncLocalStorage<true>();
const hook = createHook({
  init(_, type) {
    if (type === 'TCPCONNECTWRAP' && guarded.getStore()) made += 1;
  },
});

beforeAll(async () => {
  names = await startNameServer();
  listener = await startListener();
  hook.enable();
});
afterAll(async () => {
  hook.disable();
  await names.close();
  await listener.close();
});
beforeEach(() => {
  made = 0;
});

const guardWith = (allow: readonly string[] = [], waitMs = 2_000): Guard =>
  makeGuard({ allow, resolver: makeResolver({ servers: [names.address], waitMs }) });

function withSender<T>(guard: Guard, use: (sender: Sender) => Promise<T>): Promise<T> {
  return guarded.run(true, async () => {
    const sender = new Sender({ guard, connectMs: 2_000, deadlineMs: 4_000 });
    try {
      return await use(sender);
    } finally {
      await sender.close();
    }
  });
}

const at = (host: string) => ({ host, port: 443 });
const headers = { 'Content-Type': 'application/json' };
const body = Buffer.from('{"update_id":1}');
const reserved = (address: string) => `Bad Request: bad webhook: IP address ${address} is reserved`;
const refusal = (guard: Guard, url: string) =>
  guarded.run(true, () =>
    guard.vet(url).then(
      ({ address }) => `accepted ${address}`,
      (error: Error) => error.message,
    ),
  );
/** Returns an address in the form that it has in a URL by the WHATWG standard. */
const written = (address: string) => new URL(`https://[${address}]`).hostname.slice(1, -1);

test('the connection counter of these tests counts connections to allowed addresses', async () => {
  names.set('open.test', ['127.0.0.1']);
  const outcome = await withSender(guardWith(['127.0.0.0/8']), (sender) =>
    sender.send(receiverOf(`https://open.test:${listener.port}/`), headers, body),
  );
  expect(outcome).toMatchObject({ kind: 'failed', message: 'Connection timed out' });
  expect([made, listener.connections()]).toEqual([1, 1]);
});

describe.each(forbidden)('%s, %s', (address) => {
  const literal = isIP(address) === 4 ? address : written(address);
  const host = isIP(address) === 4 ? address : `[${literal}]`;

  test('a forbidden address is refused, whether a URL contains the address or a name resolves to the address', async () => {
    const name = `${literal.replaceAll(/[.:]/g, '-')}.x.test`;
    const before = listener.connections();
    names.set(name, [address]);
    names.set(`both-${name}`, ['8.8.8.8', '2606:4700:4700::1111', address]);
    const guard = guardWith();
    expect(await refusal(guard, `https://${host}:${listener.port}/`)).toBe(reserved(literal));
    const said = [await refusal(guard, `https://${name}/`), await refusal(guard, `https://both-${name}/`)];
    for (const text of said)
      expect(text).toMatch(/^Bad Request: bad webhook: IP address [\d.:a-f]+ is reserved$/);
    await withSender(guard, async (sender) => {
      for (const to of [host, name, `both-${name}`]) {
        const outcome = await sender.send(receiverOf(`https://${to}:${listener.port}/`), headers, body);
        expect(outcome).toMatchObject({ kind: 'failed', reason: 'reserved' });
      }
    });
    expect(names.asked(name)).toBeGreaterThanOrEqual(4);
    expect([made, listener.connections() - before]).toEqual([0, 0]);
  });
});

test('other spellings of the loopback address are refused without a DNS query', async () => {
  const guard = guardWith();
  for (const host of ['127.1', '2130706433', '0x7f.1', '0177.0.0.1', '127.0.0.1.', '%31%32%37.0.0.1'])
    expect(await refusal(guard, `https://${host}/`)).toBe(reserved('127.0.0.1'));
  for (const host of ['localhost', 'localhost.', 'LocalHost', 'bot.localhost', 'ｌocalhost'])
    expect(await refusal(guard, `https://${host}/`)).toBe(reserved('127.0.0.1'));
  expect(names.asked('localhost')).toBe(0);
  expect(await guardWith(['127.0.0.0/8']).vet('https://localhost/')).toMatchObject({ address: '127.0.0.1' });
  expect(made).toBe(0);
});

test('a denied range is refused even if another setting allows the range', async () => {
  const denying = makeGuard({
    allow: ['127.0.0.0/8', '64:ff9b::/96'],
    deny: ['127.0.0.1/32', '8.8.8.0/24', '2606:4700::/32'],
    resolver: makeResolver({ servers: [names.address], waitMs: 2_000 }),
  });
  names.set('denied.test', ['9.9.9.9', '8.8.8.8']);
  expect(await refusal(denying, 'https://127.0.0.1/')).toBe(reserved('127.0.0.1'));
  expect(await refusal(denying, 'https://127.0.0.2/')).toBe('accepted 127.0.0.2');
  expect(await refusal(denying, 'https://denied.test/')).toBe(reserved('8.8.8.8'));
  expect(await refusal(denying, 'https://[2606:4700::1]/')).toBe(reserved('2606:4700::1'));
  expect(await refusal(denying, 'https://[64:ff9b::808:808]/')).toBe(reserved('64:ff9b::808:808'));
  await withSender(denying, async (sender) => {
    const outcome = await sender.send(receiverOf(`https://127.0.0.1:${listener.port}/`), headers, body);
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'reserved' });
  });
  expect(made).toBe(0);
});

test('ports of other services are refused, both when the webhook is set and at each connection', async () => {
  const guard = guardWith(['127.0.0.0/8']);
  const ports = [22, 23, 25, 110, 143, 3306, 5432, 6000, 6379, 6667, 9200, 10080, 11211, 26379, 27017];
  for (const port of ports) {
    const url = `https://127.0.0.1:${port}/hook`;
    expect(await refusal(guard, url)).toBe(`Bad Request: bad webhook: port ${port} is not allowed`);
    await withSender(guard, async (sender) => {
      const outcome = await sender.send(receiverOf(url), headers, body);
      expect(outcome).toMatchObject({ kind: 'failed', message: `Port ${port} is not allowed` });
    });
  }
  for (const port of [80, 88, 443, 8080, 8443, 32_768, 65_535])
    expect(await refusal(guard, `https://127.0.0.1:${port}/`)).toBe('accepted 127.0.0.1');
  expect(made).toBe(0);
});

test('a URL with a user or a password is refused when the webhook is set', async () => {
  const guard = guardWith(['127.0.0.0/8']);
  for (const url of [
    'https://user:password@127.0.0.1/',
    'https://user@127.0.0.1/',
    'https://:password@127.0.0.1/',
    'https://@127.0.0.1/',
    'https://:@127.0.0.1/',
    ' https:user@127.0.0.1/',
    'https:\\\\user@127.0.0.1\\x',
    'HTTPS:///user@127.0.0.1/',
    'user@127.0.0.1',
    'user:password@127.0.0.1/',
    'u:1@127.0.0.1/',
  ])
    expect([url, await refusal(guard, url)]).toEqual([url, 'Bad Request: invalid webhook URL specified']);
  for (const url of ['https://127.0.0.1/@user', 'https://127.0.0.1?user@x', 'https://127.0.0.1#user@x'])
    expect([url, await refusal(guard, url)]).toEqual([url, 'accepted 127.0.0.1']);
});

test('if a name later resolves to a forbidden address, the next connection is refused', async () => {
  const guard = guardWith(['127.0.0.1/32']);
  const url = `https://turning.test:${listener.port}/`;
  names.set('turning.test', ['127.0.0.1']);
  expect((await guard.vet(url)).address).toBe('127.0.0.1');
  const before = listener.connections();
  await withSender(guard, async (sender) => {
    await sender.send(receiverOf(url), headers, body);
    expect(listener.connections() - before).toBe(1);
    names.set('turning.test', ['127.0.0.2']);
    expect(await sender.send(receiverOf(url), headers, body)).toMatchObject({
      kind: 'failed',
      message: 'IP address 127.0.0.2 is reserved',
    });
  });
  expect([made, listener.connections() - before]).toEqual([1, 1]);
});

test('a request connects to exactly the address that was checked, without a second look-up', async () => {
  let turn = 0;
  names.set('flip.test', (type) => {
    if (type === 'A') turn += 1;
    return turn % 2 === 1 ? ['127.0.0.1'] : ['127.0.0.2'];
  });
  const before = listener.connections();
  const outcome = await withSender(guardWith(['127.0.0.1/32']), (sender) =>
    sender.send(receiverOf(`https://flip.test:${listener.port}/`), headers, body),
  );
  expect(outcome).toMatchObject({ message: 'Connection timed out' });
  expect([turn, names.asked('flip.test'), listener.connections() - before]).toEqual([1, 2, 1]);
});

describe('name resolution', () => {
  test.each<[name: string, meaning: 'none' | 'SERVFAIL' | 'silent' | [], why: string]>([
    ['unknown.test', 'none', 'Name or service not known'],
    ['empty.test', [], 'No address associated with hostname'],
    ['broken.test', 'SERVFAIL', 'Temporary failure in name resolution'],
    ['silent.test', 'silent', 'Temporary failure in name resolution'],
  ])('a look-up of %s fails when the name server answers %j', async (name, meaning, why) => {
    if (meaning !== 'none') names.set(name, meaning);
    const began = performance.now();
    const said = await refusal(guardWith([], 2_000), `https://${name}/`);
    expect(said).toBe(`Bad Request: bad webhook: Failed to resolve host: ${why}`);
    expect(performance.now() - began).toBeLessThan(10_000);
    expect(made).toBe(0);
  });

  test('a look-up succeeds if the name server has an answer for only one address family', async () => {
    names.set('half.test', (type) => (type === 'A' ? ['1.1.1.1', '8.8.8.8'] : 'silent'));
    const guard = guardWith([], 2_000);
    expect(await guard.addressesOf(at('half.test'))).toEqual(['1.1.1.1', '8.8.8.8']);
  });

  test('a look-up returns all addresses of both families', async () => {
    const all = [
      ...Array.from({ length: 12 }, (_, n) => `8.8.4.${n}`),
      ...Array.from({ length: 8 }, (_, n) => `2606:4700::${n + 1}`),
    ];
    names.set('many.test', all);
    expect([...(await guardWith().addressesOf(at('many.test')))].sort()).toEqual([...all].sort());
  });
});

test('connections opened at the same moment share one look-up', async () => {
  names.set('shared.test', ['8.8.8.8']);
  const guard = guardWith();
  await Promise.all(Array.from({ length: 40 }, () => guard.addressesOf(at('shared.test'))));
  expect(names.asked('shared.test')).toBe(2);
  await guard.addressesOf(at('shared.test'));
  expect(names.asked('shared.test')).toBe(4);
});
