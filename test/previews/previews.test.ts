/** Tests the Redis cache of previews, and the limits on the previews that one front loads. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeGuard } from '../../src/delivery/outbound/guard.js';
import { makeResolver } from '../../src/delivery/outbound/resolver.js';
import type { ApiError } from '../../src/errors.js';
import { limits } from '../../src/limits.js';
import { createPreviews } from '../../src/previews/previews.js';
import { certificate, type OnFinished } from '../delivery/fixture.js';
import { startReceiver } from '../support/receivers.js';
import { startCluster, type TestCluster, type TestNode } from '../support/store.js';
import { VirtualTime } from '../support/virtual_time.js';

const guard = makeGuard({ allow: ['127.0.0.1/32', '::1/128'], resolver: makeResolver() });
let cluster: TestCluster;
let node: TestNode;
let nextUser = 1_000;

beforeAll(async () => {
  cluster = await startCluster(8);
  node = await cluster.node();
});
afterAll(() => cluster?.close());

/** Starts a server that sends the page `quick` immediately, and other pages only when `release` is called. */
async function serve(onTestFinished: OnFinished, status = 200) {
  const open: Array<() => void> = [];
  let isReleased = false;
  const receiver = await startReceiver(certificate, ({ url }, response) => {
    const answer = () => {
      if (response.headersSent) return;
      response.writeHead(status, { 'content-type': 'text/html' }).end(`<title>Page ${url}</title>`);
    };
    if (isReleased || url === '/quick') answer();
    else open.push(answer);
  });
  onTestFinished(() => receiver.close());
  return {
    receiver,
    open,
    url: (path: string, host = '127.0.0.1') => `https://${host}:${receiver.port}/${path}`,
    /**
     * Returns a page on one of two hosts. Two hosts are needed because the limit per host is below the limit of a
     * front.
     */
    slow: (n: number) => `https://${n % 2 ? 'localhost' : '127.0.0.1'}:${receiver.port}/slow${n}`,
    release() {
      isReleased = true;
      for (const answer of open) answer();
    },
  };
}

const previewsOf = ({ isHeld = false, time = new VirtualTime() } = {}) =>
  createPreviews({ store: node.store, guard, time, certificate: certificate.cert, held: () => isHeld });

const kindOf = (work: Promise<unknown>) =>
  work.then(
    () => 'answered',
    (error: ApiError) => error.kind,
  );

test('a page is loaded once for all fronts, even if it has no preview', async ({ onTestFinished }) => {
  for (const [status, wanted] of [
    [200, { title: 'Page /a' }],
    [404, null],
  ] as const) {
    const { receiver, url, release } = await serve(onTestFinished, status);
    release();
    for (const front of [previewsOf(), previewsOf()])
      for (const user of [1, 2]) {
        const found = await front.find(user, url('a'));
        if (wanted === null) expect(found).toBeNull();
        else expect(found).toMatchObject(wanted);
      }
    expect(receiver.requests()).toBe(1);
  }
});

test('the cache keeps a page for some time, in a slot whose key and value do not contain its URL', async () => {
  const { linkPreviews } = node.store;
  const { client } = node.connection;
  await client.flushall();
  const url = 'https://secret.example/path?key=hidden';
  const preview = { host: 'h', title: 't', description: 'd', site_name: 's' };
  await linkPreviews.keep(url, preview);
  expect(await linkPreviews.read(url)).toEqual(preview);
  const [key = '', ...others] = await client.keys('*link_preview*');
  expect(others).toEqual([]);
  expect(key).toMatch(/:link_preview:\d{1,4}$/);
  expect(String(await client.get(key))).not.toMatch(/secret|hidden/);
  const left = await client.pttl(key);
  expect(left).toBeGreaterThan(limits.link_preview_kept_ms - 600_000);
  expect(left).toBeLessThanOrEqual(limits.link_preview_kept_ms);
  await linkPreviews.keep(url, null);
  expect(await linkPreviews.read(url)).toBeNull();
  expect(await client.pttl(key)).toBeLessThanOrEqual(limits.link_preview_absent_ms);
});

test('a cached preview is not used for another page in the same slot', async () => {
  const { linkPreviews } = node.store;
  const { client } = node.connection;
  const [url, other] = ['https://one.example/', 'https://other.example/'];
  await client.flushall();
  await linkPreviews.keep(url, null);
  const [key = ''] = await client.keys('*link_preview*');
  await linkPreviews.keep(other, { host: 'other.example', title: 'Other' });
  const [otherKey = ''] = (await client.keys('*link_preview*')).filter((one) => one !== key);
  const value = await client.getBuffer(otherKey);
  await client.set(key, value as Buffer);
  expect(await linkPreviews.read(url)).toBeUndefined();
});

test('calls for a page that is being loaded share the result of this load', async ({ onTestFinished }) => {
  const { receiver, open, url, release } = await serve(onTestFinished);
  const { find } = previewsOf();
  const first = find(++nextUser, url('a'));
  await expect.poll(() => open.length).toBe(1);
  const others = [find(++nextUser, url('a')), find(++nextUser, url('a'))];
  release();
  expect(await Promise.all([first, ...others])).toEqual(Array(3).fill(await first));
  expect(receiver.requests()).toBe(1);
});

test('waiting calls for the same page share the result of the first call', async ({ onTestFinished }) => {
  const { receiver, open, url, release } = await serve(onTestFinished);
  const { find } = previewsOf();
  const user = ++nextUser;
  const slow = find(user, url('slow'));
  await expect.poll(() => open.length).toBe(1);
  const same = [find(user, url('same')), find(user, url('same'))];
  // Reads the cache ten times. This gives the two calls for `same` the time to queue behind the slow page.
  for (let n = 0; n < 10; n++) await node.store.linkPreviews.read(url('none'));
  release();
  expect(await Promise.all(same)).toEqual(Array(2).fill({ ...(await slow), title: 'Page /same' }));
  expect(receiver.requests()).toBe(2);
});

test('a front loads one page at a time for each person, and limits how often a person can ask for previews', async ({
  onTestFinished,
}) => {
  const { open, url, release, receiver } = await serve(onTestFinished);
  const { find } = previewsOf();
  const user = ++nextUser;
  const most = 1 + limits.preview_loads_per_person_waiting_max;
  const outcomes = Array.from({ length: most + 1 }, (_, i) => kindOf(find(user, url(`b${i}`))));
  expect(await Promise.race(outcomes)).toBe('too_many_requests');
  await expect.poll(() => open.length).toBe(1);
  release();
  expect((await Promise.all(outcomes)).filter((one) => one === 'answered')).toHaveLength(most);
  expect(receiver.requests()).toBe(most);
  const { linkPreviews } = node.store;
  const taken: string[] = [];
  for (let n = 0; n < 2 * limits.link_previews_per_person_max; n++)
    taken.push(await kindOf(linkPreviews.take(user)));
  expect(taken).toContain('too_many_requests');
});

test('a call is refused if it waits too long for the front to load its page', async ({ onTestFinished }) => {
  const { open, slow, release } = await serve(onTestFinished);
  const time = new VirtualTime();
  const { find, waiting } = previewsOf({ time });
  const most = limits.preview_loads_at_once + limits.preview_loads_waiting_max;
  const outcomes = Array.from({ length: most + 1 }, (_, i) => kindOf(find(++nextUser, slow(i))));
  expect(await Promise.race(outcomes)).toBe('too_many_requests');
  await expect.poll(() => open.length).toBe(limits.preview_loads_at_once);
  await expect.poll(waiting).toBe(limits.preview_loads_waiting_max);
  await time.advance(limits.preview_wait_ms_max);
  release();
  const refused = (await Promise.all(outcomes)).filter((one) => one === 'too_many_requests');
  expect(refused.length).toBeGreaterThan(1);
  expect(waiting()).toBe(0);
});

test('people whose pages load slowly get at most half of the simultaneous loads of a front', async ({
  onTestFinished,
}) => {
  const { open, slow, url, release } = await serve(onTestFinished);
  const time = new VirtualTime();
  const { find, loads } = previewsOf({ time });
  const users = Array.from({ length: limits.preview_loads_at_once }, () => ++nextUser);
  const first = users.map((user, i) => find(user, slow(i)));
  await expect.poll(() => open.length).toBe(users.length);
  await time.advance(limits.preview_ms_max);
  expect(await Promise.all(first)).toEqual(users.map(() => null));
  expect(loads).toEqual({ found: 0, none: 0, failed: users.length });
  const again = users.map((user, i) => find(user, slow(users.length + i)));
  await expect.poll(() => open.length).toBe(users.length * 1.5);
  expect(await find(++nextUser, url('quick'))).toMatchObject({ title: 'Page /quick' });
  expect(open.length).toBe(users.length * 1.5);
  release();
  await Promise.all(again);
});

test('people who view the same slow page share one load of the front', async ({ onTestFinished }) => {
  const { open, url, release } = await serve(onTestFinished);
  const { find, loads, waiting } = previewsOf();
  const same = Array.from({ length: 2 * limits.preview_loads_at_once }, () => find(++nextUser, url('same')));
  await expect.poll(() => open.length).toBe(1);
  expect(await find(++nextUser, url('quick'))).toMatchObject({ title: 'Page /quick' });
  expect(waiting()).toBe(0);
  release();
  expect(new Set((await Promise.all(same)).map((one) => one?.title))).toEqual(new Set(['Page /same']));
  expect(loads).toEqual({ found: 2, none: 0, failed: 0 });
});

test('a slow host cannot use all simultaneous loads of a front', async ({ onTestFinished }) => {
  const { open, url, release } = await serve(onTestFinished);
  const { find } = previewsOf();
  const most = limits.preview_loads_per_host_at_once;
  const slow = Array.from({ length: most }, (_, i) => find(++nextUser, url(`slow${i}`)));
  await expect.poll(() => open.length).toBe(most);
  expect(await kindOf(find(++nextUser, url('quick')))).toBe('too_many_requests');
  expect(await find(++nextUser, url('quick', 'localhost'))).toMatchObject({ title: 'Page /quick' });
  release();
  await Promise.all(slow);
});

test('no page is loaded during a drill, and cached pages stay available', async ({ onTestFinished }) => {
  const { receiver, url, release } = await serve(onTestFinished);
  release();
  const { find } = previewsOf({ isHeld: true });
  expect(await find(1, url('a'))).toBeNull();
  expect(receiver.requests()).toBe(0);
  expect(await previewsOf().find(1, url('a'))).toMatchObject({ title: 'Page /a' });
  expect(await find(1, url('a'))).toMatchObject({ title: 'Page /a' });
});
