/** Tests traces from a request to its delivery over real processes, as a trace collector receives them. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepBooks } from '../delivery/world.js';
import { resultOf, type Service, startService } from '../support/service.js';

interface Seen {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly role: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly links?: ReadonlyArray<{ readonly traceId: string; readonly spanId: string }>;
}

// biome-ignore lint/suspicious/noExplicitAny: the JSON that a collector receives
const plain = (list: any[]) =>
  Object.fromEntries(list.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));

const spans: Seen[] = [];
let bodies = '';
const collector = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  const text = Buffer.concat(parts).toString();
  bodies += text;
  for (const { resource, scopeSpans } of JSON.parse(text).resourceSpans)
    for (const { spans: sent } of scopeSpans)
      for (const span of sent)
        spans.push({
          ...span,
          role: plain(resource.attributes)['petrel.role'],
          attributes: plain(span.attributes),
        });
  response.end('{}');
});

let service: Service;
beforeAll(async () => {
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  const { port } = collector.address() as AddressInfo;
  service = await startService({
    flushing: false,
    extraEnv: {
      OTLP_TRACES_URL: `http://127.0.0.1:${port}/v1/traces`,
      OTLP_TRACES_RATIO: '1',
      WEBHOOK_ALLOW_CIDRS: '127.0.0.1/32',
    },
  });
});
afterAll(async () => {
  await service?.stop();
  collector.close();
});

test('one trace covers the request, its script, the event and the delivery, across two processes', async () => {
  let refusals = 1;
  const books = await keepBooks(({ text }) => (text === 'traced' && refusals-- > 0 ? 500 : 200));
  const owner = await service.newUser('owner');
  const bot = await service.newBot(owner, 'traced');
  const { url, certificate } = books;
  await service.openChat(owner, bot);
  await resultOf(service.bot(bot, 'setWebhook', { url, certificate }));
  await resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text: 'traced' }));
  const named = (name: string, traceId?: string) =>
    spans.filter((span) => span.name === name && (traceId === undefined || span.traceId === traceId));
  const path = 'request /api/chats/{chat_id}/messages';
  await expect.poll(() => named(path)).toHaveLength(1);
  const [root] = named(path) as [Seen];
  await expect.poll(() => named('delivery', root.traceId)).toHaveLength(2);
  // Each process sends its spans once a second.
  for (const name of ['script messages/send_to_bot', 'event message'])
    await expect.poll(() => named(name, root.traceId)).toHaveLength(1);
  const [script] = named('script messages/send_to_bot', root.traceId) as [Seen];
  const [event] = named('event message', root.traceId) as [Seen];
  const [first, second] = named('delivery', root.traceId) as [Seen, Seen];
  expect([root.role, script.role, event.role, first.role]).toEqual(['front', 'front', 'deliver', 'deliver']);
  expect([script.parentSpanId, event.parentSpanId]).toEqual([root.spanId, root.spanId]);
  expect([first.parentSpanId, second.parentSpanId]).toEqual([event.spanId, event.spanId]);
  expect(first.attributes).toMatchObject({ 'petrel.outcome': '500', 'petrel.tries': '1' });
  expect(second.attributes).toMatchObject({ 'petrel.outcome': '200', 'petrel.tries': '2' });
  for (const { startTimeUnixNano, endTimeUnixNano } of [root, script, event, first, second]) {
    expect(Number(endTimeUnixNano)).toBeGreaterThanOrEqual(Number(startTimeUnixNano));
    expect(Math.abs(Number(startTimeUnixNano) / 1e6 - Date.now())).toBeLessThan(60_000);
  }
  // The call of a bot has a trace too. No trace contains a token.
  await resultOf(service.bot(bot, 'sendMessage', { chat_id: owner.id, text: 'back' }));
  await expect.poll(() => named('request sendMessage')).toHaveLength(1);
  expect(bodies).not.toContain(bot.token.split(':')[1]);
  expect(bodies).not.toContain(owner.token);
  await books.close();
});

test('the call of a bot joins the trace of the update if the bot returns the header of the poll', async () => {
  const owner = await service.newUser('owner');
  const bot = await service.newBot(owner, 'polling');
  await service.openChat(owner, bot);
  const call = (method: string, body: object, headers: Record<string, string> = {}) =>
    fetch(`${service.fronts[0].url}/bot${bot.token}/${method}`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json', ...headers } },
      body: JSON.stringify(body),
    });
  const { result } = (await (await call('getUpdates', {})).json()) as { result: { update_id: number }[] };
  const offset = (result.at(-1)?.update_id ?? 0) + 1;
  await resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text: 'polled' }));
  const traceparent = String((await call('getUpdates', { timeout: 50, offset })).headers.get('traceparent'));
  const [, traceId, parentSpanId] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(traceparent) ?? [];
  await call('sendMessage', { chat_id: owner.id, text: 'an answer' }, { traceparent });
  const named = (name: string) => spans.filter((span) => span.name === name && span.traceId === traceId);
  const names = ['request /api/chats/{chat_id}/messages', 'event message', 'request sendMessage'];
  for (const name of names) await expect.poll(() => named(name)).toHaveLength(1);
  const [update, event, sent] = names.map((name) => named(name)[0] as Seen);
  expect(event?.spanId).toBe(parentSpanId);
  expect([event?.parentSpanId, sent?.parentSpanId]).toEqual([update?.spanId, parentSpanId]);
  const empty = await call('getUpdates', { offset: offset + 1 });
  expect(empty.headers.get('traceparent')).toBeNull();
});

test('the call of a bot joins the trace of the update if the bot returns the header of the delivery', async () => {
  const headers: string[] = [];
  const books = await keepBooks(({ headers: { traceparent } }) => {
    headers.push(String(traceparent));
    return headers.length === 1 ? 500 : 200;
  });
  const owner = await service.newUser('owner');
  const bot = await service.newBot(owner, 'joining');
  await service.openChat(owner, bot);
  const { url, certificate } = books;
  await resultOf(service.bot(bot, 'setWebhook', { url, certificate, drop_pending_updates: true }));
  await resultOf(service.app(owner, 'POST', `/api/chats/${bot.id}/messages`, { text: 'joined' }));
  await expect.poll(() => headers.length).toBe(2);
  expect(headers[1]).toBe(headers[0]);
  const [, traceId, parentSpanId] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(headers[0] ?? '') ?? [];
  const call = (method: string, traceparent: string, body: object) =>
    fetch(`${service.fronts[0].url}/bot${bot.token}/${method}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', traceparent },
      body: JSON.stringify(body),
    });
  const named = (name: string) => spans.filter((span) => span.name === name && span.traceId === traceId);
  await call('sendMessage', headers[0] as string, { chat_id: owner.id, text: 'an answer' });
  await call('getMe', headers[0] as string, {});
  const names = [
    'request /api/chats/{chat_id}/messages',
    'event message',
    'request sendMessage',
    'request getMe',
  ];
  for (const name of names) await expect.poll(() => named(name)).toHaveLength(1);
  const [update] = named('request /api/chats/{chat_id}/messages') as [Seen];
  const [event] = named('event message') as [Seen];
  const [sent] = named('request sendMessage') as [Seen];
  const [got] = named('request getMe') as [Seen];
  expect([event.spanId, event.parentSpanId]).toEqual([parentSpanId, update.spanId]);
  expect([sent.parentSpanId, got.parentSpanId]).toEqual([parentSpanId, parentSpanId]);
  // The bot's sendMessage call causes a change with a separate trace. That trace and the trace of the update link to
  // each other.
  const [link] = sent.links ?? [];
  const own = spans.find(({ traceId, spanId }) => traceId === link?.traceId && spanId === link.spanId);
  expect(own).toMatchObject({ name: 'request sendMessage', links: [{ traceId, spanId: sent.spanId }] });
  expect(got.links ?? []).toEqual([]);

  // A malformed header is ignored.
  const before = spans.length;
  for (const header of [
    '00-0-0-01',
    `00-${'0'.repeat(32)}-${parentSpanId}-01`,
    `01-${traceId}-${parentSpanId}-01`,
  ])
    await call('getMe', header, {});
  await expect.poll(() => spans.slice(before).filter(({ name }) => name === 'request getMe')).toHaveLength(3);
  expect(named('request getMe')).toHaveLength(1);
  await books.close();
});
