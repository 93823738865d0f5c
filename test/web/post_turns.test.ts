/** Tests that readers of posts at one client address do not delay readers at other addresses. */
import { expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { systemRandom } from '../../src/random.js';
import type { DispatchOptions } from '../../src/server/call_context.js';
import { createDispatch } from '../../src/server/dispatch.js';
import type { PublicPost } from '../../src/server/endpoint.js';
import type { ApiRequest } from '../../src/server/request.js';
import { systemTime } from '../../src/time.js';

const path = '/post/00000000-0000-8000-8000-000000000000';
const post: PublicPost = { title: 'News', date: 0, sign: '', text: '', reactions: [] };

test('if one address makes many slow look-ups, further look-ups from this address are refused, and other addresses do not wait', async () => {
  const begun: Array<() => void> = [];
  const shown: string[] = [];
  const { handle } = createDispatch({
    methods: [],
    endpoints: [],
    store: { time: systemTime, random: systemRandom } as unknown as DispatchOptions['store'],
    files: {} as DispatchOptions['files'],
    receivers: {} as DispatchOptions['receivers'],
    adminToken: undefined,
    postPages: {
      find: () => new Promise((resolve) => begun.push(() => resolve(post))),
      show: async ({ remoteAddress }) => void shown.push(remoteAddress),
      refuse: () => undefined,
    },
    own: {},
  });
  const read = async (remoteAddress: string) => {
    const request = {
      method: 'GET',
      path,
      query: '',
      body: Buffer.alloc(0),
      remoteAddress,
      forwardedFor: '',
      acceptedTypes: '',
    };
    await handle(request as unknown as ApiRequest);
  };
  const { post_pages_per_address_at_once: atOnce, post_pages_per_address_waiting_max: waiting } = limits;
  const busy = Array.from({ length: atOnce + waiting }, () => read('192.0.2.1'));
  await expect.poll(() => begun.length).toBe(atOnce);
  await expect(read('192.0.2.1')).rejects.toMatchObject({ kind: 'too_many_requests' });
  const other = read('192.0.2.2');
  await expect.poll(() => begun.length).toBe(atOnce + 1);
  begun[atOnce]?.();
  await other;
  expect(shown).toEqual(['192.0.2.2']);
  let ended = 0;
  const shownNow = () => {
    for (; ended < begun.length; ended++) begun[ended]?.();
    return shown.length;
  };
  await expect.poll(shownNow).toBe(busy.length + 1);
  await Promise.all(busy);
});
