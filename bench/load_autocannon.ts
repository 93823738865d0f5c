/** The load process for machines without wrk: `load_autocannon.js '{"url":…,"connections":…,"seconds":…}'`. */
import autocannon from 'autocannon';

const { url, body, connections, seconds } = JSON.parse(process.argv[2] ?? '{}') as {
  url: string;
  body?: string;
  connections: number;
  seconds: number;
};
const result = await autocannon({
  url,
  connections,
  duration: seconds,
  method: body === undefined ? 'GET' : 'POST',
  headers: body === undefined ? {} : { 'content-type': 'application/json' },
  ...(body === undefined ? {} : { body }),
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
