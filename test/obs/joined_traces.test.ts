/** Tests which spans a process keeps for requests with `traceparent`, and for requests that run many scripts. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { Traces } from '../../src/obs/traces.js';

interface Sent {
  readonly traceId: string;
  readonly name: string;
}

const spans: Sent[] = [];
const collector = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  for (const { scopeSpans } of JSON.parse(Buffer.concat(parts).toString()).resourceSpans)
    for (const { spans: sent } of scopeSpans) spans.push(...sent);
  response.end('{}');
});
/** A trace id that is so low that the trace is kept even at a very small sampling ratio. */
const lowest = '00000000000000000000000000000001';
const header = (flags: string) => `00-${lowest}-00000000000000aa-${flags}`;

let url: string;
beforeAll(async () => {
  collector.listen(0, '127.0.0.1');
  await once(collector, 'listening');
  url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}/`;
});
beforeEach(() => void spans.splice(0));
afterAll(() => void collector.close());

/** Runs `work` while the given share of the traces is kept. Returns the spans that the collector got. */
async function traced(ratio: number, work: (traces: Traces) => void): Promise<readonly Sent[]> {
  const errors: unknown[] = [];
  const traces = new Traces({
    ...{ url, ratio, role: 'front', version: '1' },
    onError: (error) => errors.push(error),
  });
  work(traces);
  await traces.stop();
  expect(errors).toEqual([]);
  return spans;
}

const call = (traces: Traces, traceparent: string, isKnown = true) =>
  traces.within(
    traceparent,
    () => isKnown,
    () => traces.over('getMe', 200),
  );
const joined = (sent: readonly Sent[]) => sent.filter(({ traceId }) => traceId === lowest).length;

test('a request of a known caller joins the trace of its traceparent header if the header has the sampled flag', async () => {
  expect(joined(await traced(0.001, (traces) => call(traces, header('01'))))).toBe(1);
  spans.splice(0);
  expect(joined(await traced(0.001, (traces) => call(traces, header('00'))))).toBe(0);
});

test('a request of an unknown caller does not join the trace of its traceparent header', async () => {
  expect(joined(await traced(1, (traces) => call(traces, header('01'), false)))).toBe(0);
  expect(spans).toHaveLength(1);
});

test('traces with ids from callers fill at most a quarter of the buffer of spans', async () => {
  const sent = await traced(1, (traces) => {
    for (let n = 0; n < 10_000; n++) call(traces, header('01'));
    call(traces, '');
  });
  expect(joined(sent)).toBe(1_024);
  expect(sent.length).toBeGreaterThan(1_024);
});

test('the number of spans of a request is limited, because a stream may run scripts for days', async () => {
  const sent = await traced(1, (traces) =>
    traces.within(
      '',
      () => true,
      () => {
        for (let n = 0; n < 10_000; n++) traces.script('updates/follow', 1);
        traces.over('streamUpdates', 200);
      },
    ),
  );
  expect(sent).toHaveLength(101);
});
