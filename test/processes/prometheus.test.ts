/** Tests what a front accepts from Prometheus. `test/observability/ranges.long.test.ts` uses a real Prometheus. */
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { limits } from '../../src/limits.js';
import { durationBounds } from '../../src/obs/distribution.js';
import { readPrometheus } from '../../src/processes/prometheus.js';
import { VirtualTime } from '../support/virtual_time.js';

type Series = readonly [
  labels: Readonly<Record<string, string>>,
  values: readonly (readonly [number, string])[],
];

let server: Server;
let url: string;
let asked: URL[] = [];
let respond: (query: string, response: ServerResponse) => void;

const succeed = (response: ServerResponse, series: readonly Series[] = []) => {
  const result = series.map(([metric, values]) => ({ metric, values }));
  response.end(JSON.stringify({ status: 'success', data: { resultType: 'matrix', result } }));
};

beforeAll(async () => {
  server = createServer((request, response) => {
    const target = new URL(request.url ?? '', url);
    asked.push(target);
    if (target.pathname === '/elsewhere') succeed(response);
    else respond(target.searchParams.get('query') ?? '', response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/below`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(() => {
  asked = [];
});

const time = new VirtualTime();
const read = (range: '6h' | '24h' | '7d') => readPrometheus({ url, range, time });

test('each point of a range combines the results of five fixed Prometheus queries', async () => {
  const step = 30;
  const end = Math.floor(time.now() / (step * 1_000)) * step;
  const values = (...texts: string[]) => texts.map((text, i) => [end - step * i, text] as const);
  respond = (query, response) => {
    if (query.includes('petrel_requests_total'))
      succeed(response, [
        [{ status: '200' }, values('90.4', '10')],
        [{ status: '429' }, values('5')],
        [{ status: '404' }, values('4')],
        [{ status: '503' }, values('3')],
        [{ status: '0' }, values('2')],
      ]);
    else if (query.includes('petrel_request_seconds_bucket'))
      succeed(response, [
        [{ le: '0.0005' }, values('60', 'NaN')],
        ...durationBounds.slice(1).map((le): Series => [{ le: String(le) }, values('80')]),
        [{ le: '+Inf' }, values('80')],
        [{ le: '0.7' }, values('80')],
      ]);
    else if (query.includes('petrel_deliveries_total'))
      succeed(response, [
        [{ outcome: 'delivered' }, values('7')],
        [{ outcome: '5xx' }, values('1')],
      ]);
    else if (query.includes('petrel_flush_lag_seconds')) succeed(response, [[{}, values('120.2')]]);
    else succeed(response, [[{}, values('5000000', '4000000')]]);
  };
  const found = await read('6h');
  const none = durationBounds.map(() => 0);
  expect(found).toEqual({
    ...{
      at_ms: time.now(),
      step_ms: step * 1_000,
      span_ms: 6 * 3_600_000,
      bounds_seconds: [...durationBounds],
    },
    points: [
      {
        at_ms: (end - 2 * step) * 1_000,
        ...{ calls: 10, refused: 0, slowed: 0, failed: 0, times: [...none, 0], deliveries: {} },
        redis_bytes: 4_000_000,
      },
      {
        at_ms: (end - step) * 1_000,
        ...{ calls: 104, refused: 4, slowed: 5, failed: 3, times: [60, 20, ...none.slice(1)] },
        deliveries: { delivered: 7, '5xx': 1 },
        ...{ lag_ms: 120, redis_bytes: 5_000_000 },
      },
    ],
  });
  expect(asked).toHaveLength(5);
  for (const { pathname, searchParams } of asked) {
    expect(pathname).toBe('/below/api/v1/query_range');
    expect([searchParams.get('start'), searchParams.get('end'), searchParams.get('step')]).toEqual([
      ...[`${end - 6 * 3_600 + step}`, `${end}`, `${step}`],
    ]);
  }
});

test('a Prometheus query asks for the same number of points for every range', async () => {
  respond = (_, response) => succeed(response);
  for (const range of ['6h', '24h', '7d'] as const) {
    asked = [];
    expect((await read(range)).points).toEqual([]);
    const [start, end, step] = ['start', 'end', 'step'].map((name) =>
      Number(asked[0]?.searchParams.get(name)),
    );
    expect(((end as number) - (start as number)) / (step as number) + 1).toBe(limits.history_points_max);
  }
});

test.each<[string, (response: ServerResponse) => void, RegExp]>([
  ['an error', (response) => response.writeHead(422).end('{}'), /answered with 422/],
  ['text', (response) => response.end('<html>'), /JSON/],
  ['another shape', (response) => response.end('{"status":"success","data":{"result":[]}}'), /resultType/],
  ['a redirect', (response) => response.writeHead(302, { location: '/elsewhere' }).end(), /fetch failed/],
  [
    'more than the limit',
    (response) => response.end(' '.repeat(limits.prometheus_answer_bytes_max + 1)),
    /too large/,
  ],
  [
    'too many values',
    (response) => succeed(response, [[{}, new Array(limits.history_points_max + 1).fill([1, '1'])]]),
    /too_big|Too big/,
  ],
])('an answer of Prometheus is refused if it is %s', async (_, answer, error) => {
  respond = (_query, response) => answer(response);
  await expect(read('6h')).rejects.toThrow(error);
});

test('a read of the history fails if Prometheus does not answer in time', async () => {
  respond = () => undefined;
  const reading = read('6h');
  const failed = expect(reading).rejects.toThrow(/took longer/);
  await expect.poll(() => asked.length).toBe(5);
  await time.advance(limits.prometheus_wait_ms_max);
  await failed;
});
