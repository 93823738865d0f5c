/**
 * Closed-loop load on one server: a fixed number of connections, each with one request at a time. wrk makes it where it
 * is installed, since it is cheap enough to drive a server to its limit; else autocannon, in a process of its own.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from './client.js';
import { isInstalled, runForOutput } from './processes.js';

export const loadTools = ['wrk', 'autocannon'] as const;
export type LoadTool = (typeof loadTools)[number];

export interface LoadRequest {
  readonly url: string;
  /** JSON of a POST; a GET without it. */
  readonly body: string | undefined;
}

export interface LoadOptions {
  readonly tool: LoadTool;
  readonly connections: number;
  readonly seconds: number;
  /** Folder for files that a tool reads. */
  readonly dir: string;
  readonly signal: AbortSignal;
}

export interface LoadResult {
  /** Requests answered with success. */
  readonly requests: number;
  readonly seconds: number;
  /** Milliseconds */
  readonly p50: number;
  readonly p99: number;
}

export const bestLoadTool = (): LoadTool => (isInstalled('wrk') ? 'wrk' : 'autocannon');

/** What both tools print as one line of JSON. */
interface Printed {
  readonly requests: number;
  readonly seconds: number;
  readonly failed: number;
  readonly p50: number;
  readonly p99: number;
}

const quoted = (text: string) => JSON.stringify(text).replace(/\\u([\da-f]{4})/g, '\\u{$1}');

function wrkScript({ body }: LoadRequest): string {
  const request =
    body === undefined
      ? ''
      : `wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/json"\nwrk.body = ${quoted(body)}\n`;
  return `${request}
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('{"requests":%d,"seconds":%f,"failed":%d,"p50":%f,"p99":%f}\\n', summary.requests,
    summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
`;
}

async function runWrk(request: LoadRequest, options: LoadOptions): Promise<string> {
  const script = join(options.dir, 'load.lua');
  writeFileSync(script, wrkScript(request), { mode: 0o600 });
  const args = ['-t1', `-c${options.connections}`, `-d${options.seconds}s`, '-s', script, request.url];
  try {
    return await runForOutput('wrk', args, options.signal);
  } finally {
    rmSync(script, { force: true });
  }
}

async function runAutocannon(request: LoadRequest, options: LoadOptions): Promise<string> {
  const { connections, seconds, signal } = options;
  const process_ = fileURLToPath(new URL('load_autocannon.js', import.meta.url));
  return runForOutput(
    process.execPath,
    [process_, JSON.stringify({ ...request, connections, seconds })],
    signal,
  );
}

/** Loads a server for a time. Throws WrongAnswer when an answer was no success or a connection failed. */
export async function load(request: LoadRequest, options: LoadOptions): Promise<LoadResult> {
  const run = options.tool === 'wrk' ? runWrk : runAutocannon;
  const output = await run(request, options);
  const line = output.split('\n').find((candidate) => candidate.startsWith('{'));
  const { failed, ...result } = JSON.parse(line ?? '{"failed":-1}') as Printed;
  expect(failed === 0, `${failed} of ${result.requests} requests failed under load`);
  return result;
}
