import { readFileSync } from 'node:fs';
import autocannon, { type Request } from 'autocannon';
import { requestsOf } from '../../src/loadtest/fixed_rate.js';
import { isFixed } from '../../src/loadtest/series.js';
import type { AutocannonTask } from './load.js';

const task = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as AutocannonTask;
const { origin, rows, byRow, templates, connections, seconds } = task;
const next = requestsOf(templates, rows, byRow);

function request(): Request {
  const { method, path, headers, body } = next();
  return { method, path, headers, ...(body === null ? {} : { body }) };
}

const result = await autocannon({
  url: origin,
  connections,
  duration: seconds,
  requests: [isFixed({ calls: templates, rows }) ? request() : { setupRequest: request }],
});
process.stdout.write(
  `${JSON.stringify({
    requests: result.requests.total,
    seconds: result.duration,
    failed: result.errors + result.non2xx,
    p50: result.latency.p50,
    p99: result.latency.p99,
  })}\n`,
);
