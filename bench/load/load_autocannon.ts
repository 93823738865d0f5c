/** The load process for machines without wrk: `load_autocannon.js task.json`. */
import { readFileSync } from 'node:fs';
import autocannon, { type Request } from 'autocannon';
import { fillIn, isFixed, type Template } from '../../src/bench/series.js';
import type { AutocannonTask } from './load.js';

const task = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as AutocannonTask;
const { origin, rows, templates, connections, seconds } = task;
let at = -1;
let pass = 0;

function next(): Request {
  if (++at === rows.length) {
    at = 0;
    pass++;
  }
  const row = rows[at] as readonly string[];
  const { verb, path, token, body } = templates[pass % templates.length] as Template;
  return {
    method: verb,
    path: fillIn(path, row, pass),
    headers: {
      ...(token === undefined ? {} : { authorization: `Bearer ${fillIn(token, row, pass)}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: fillIn(body, row, pass) }),
  };
}

const result = await autocannon({
  url: origin,
  connections,
  duration: seconds,
  requests: [isFixed({ calls: templates, rows }) ? next() : { setupRequest: next }],
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
