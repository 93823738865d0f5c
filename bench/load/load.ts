/**
 * Puts closed-loop load on one server: a fixed number of connections, each with one request in flight. Uses wrk if it
 * is installed, because only wrk can drive a server to its limit. Otherwise runs autocannon in a separate process.
 */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from '../../src/loadtest/client.js';
import type { FixedRate, FixedRateResult } from '../../src/loadtest/fixed_rate.js';
import {
  type Call,
  firstCall,
  isFixed,
  type Pieces,
  type Series,
  type Template,
  templatesOf,
} from '../../src/loadtest/series.js';
import { isInstalled, runForOutput } from '../service/processes.js';
import type { FixedTask } from './load_fixed.js';

export const loadTools = ['wrk', 'autocannon'] as const;
export type LoadTool = (typeof loadTools)[number];

export interface LoadOptions {
  readonly tool: LoadTool;
  readonly connections: number;
  readonly seconds: number;
  readonly dir: string;
  readonly signal: AbortSignal;
  readonly anyCore?: boolean;
}

export interface LoadResult {
  readonly requests: number;
  readonly seconds: number;
  readonly p50: number;
  readonly p99: number;
}

export const bestLoadTool = (): LoadTool => (isInstalled('wrk') ? 'wrk' : 'autocannon');

interface Printed {
  readonly requests: number;
  readonly seconds: number;
  readonly failed: number;
  readonly p50: number;
  readonly p99: number;
}

export interface AutocannonTask extends Pick<Series, 'origin' | 'rows'> {
  readonly byRow: boolean;
  readonly templates: readonly Template[];
  readonly connections: number;
  readonly seconds: number;
}

const quoted = (text: string) => JSON.stringify(text).replace(/\\u([\da-f]{4})/g, '\\u{$1}');
const listed = (pieces: Pieces) =>
  `{${pieces.map((piece) => (typeof piece === 'string' ? quoted(piece) : piece)).join(',')}}`;

const report = `
function done(summary, latency)
  local e = summary.errors
  io.write(string.format('{"requests":%d,"seconds":%f,"failed":%d,"p50":%f,"p99":%f}\\n', summary.requests,
    summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3))
end
`;

/** Builds the wrk script for a request that never changes. wrk then builds the request only once. */
function fixedScript({ verb, token, body }: Call): string {
  return [
    `wrk.method = ${quoted(verb)}`,
    ...(token === undefined ? [] : [`wrk.headers["Authorization"] = ${quoted(`Bearer ${token}`)}`]),
    ...(body === undefined ? [] : ['wrk.headers["Content-Type"] = "application/json"']),
    ...(body === undefined ? [] : [`wrk.body = ${quoted(body)}`]),
    report,
  ].join('\n');
}

/** The request up to its body. If there is a body, the result ends with `Content-Length: `. */
function head(origin: string, { verb, path, token, body }: Template): Pieces {
  const bearer = token === undefined ? [] : ['\r\nAuthorization: Bearer ', ...token];
  const type = body === undefined ? '\r\n\r\n' : '\r\nContent-Type: application/json\r\nContent-Length: ';
  return [`${verb} `, ...path, ` HTTP/1.1\r\nHost: ${new URL(origin).host}`, ...bearer, type];
}

/**
 * Builds the wrk script for requests that differ. For each request, wrk calls the script's function `request`, which
 * fills in the values from the next row of `rowsFile`.
 */
function rowsScript({ origin, byRow }: Series, templates: readonly Template[], rowsFile: string): string {
  const calls = templates.map(
    (template) =>
      `{head=${listed(head(origin, template))}, body=${template.body ? listed(template.body) : 'nil'}}`,
  );
  return `
local calls = {${calls.join(',\n')}}
local rows, at, pass, looked = {}, 0, 0, false
for line in io.lines(${quoted(rowsFile)}) do
  local row = {}
  for cell in line:gmatch('[^\\t]+') do row[#row + 1] = cell end
  rows[#rows + 1] = row
end
local function text(pieces, row)
  local out = {}
  for i = 1, #pieces do
    local piece = pieces[i]
    if type(piece) == 'number' then piece = piece == 0 and pass or row[piece] end
    out[i] = piece
  end
  return table.concat(out)
end
function request()
  -- wrk calls this function once before the load and discards the result.
  if looked then at = at + 1 end
  looked = true
  if at > #rows then at, pass = 1, pass + 1 end
  local row = rows[math.max(at, 1)]
  local call = calls[${byRow ? 'tonumber(row[1])' : 'pass % #calls'} + 1]
  if not call.body then return text(call.head, row) end
  local body = text(call.body, row)
  return text(call.head, row) .. #body .. '\\r\\n\\r\\n' .. body
end
${report}`;
}

let files = 0;

async function runWrk(series: Series, salt: string, options: LoadOptions): Promise<string> {
  const { dir, connections, seconds, signal, anyCore } = options;
  const [script, rows] = [join(dir, `load_${++files}.lua`), join(dir, `load_${files}.txt`)];
  const call = firstCall(series, salt);
  const text = isFixed(series) ? fixedScript(call) : rowsScript(series, templatesOf(series, salt), rows);
  writeFileSync(script, text, { mode: 0o600 });
  writeFileSync(rows, series.rows.map((row) => `${row.join('\t')}\n`).join(''), { mode: 0o600 });
  const url = `${series.origin}${call.path}`;
  try {
    return await runForOutput(
      'wrk',
      ['-t1', `-c${connections}`, `-d${seconds}s`, '-s', script, url],
      signal,
      anyCore,
    );
  } finally {
    for (const file of [script, rows]) rmSync(file, { force: true });
  }
}

async function runAutocannon(series: Series, salt: string, options: LoadOptions): Promise<string> {
  const { dir, connections, seconds, signal, anyCore } = options;
  const { origin, rows, byRow } = series;
  const file = join(dir, `load_${++files}.json`);
  const task: AutocannonTask = {
    ...{ origin, rows, connections, seconds, byRow: byRow ?? false },
    templates: templatesOf(series, salt),
  };
  writeFileSync(file, JSON.stringify(task), { mode: 0o600 });
  try {
    const program = fileURLToPath(new URL('load_autocannon.js', import.meta.url));
    return await runForOutput(process.execPath, [program, file], signal, anyCore);
  } finally {
    rmSync(file, { force: true });
  }
}

let loads = 0;

/** Loads a server at a fixed rate, from a separate process. Throws WrongAnswer if a request failed. */
export async function loadFixed(
  series: Series,
  options: Pick<LoadOptions, 'connections' | 'seconds' | 'dir' | 'signal' | 'anyCore'> &
    Pick<FixedRate, 'rate' | 'warmup_s'> &
    Pick<FixedTask, 'ca'>,
): Promise<FixedRateResult> {
  const { dir, signal, anyCore, ...load } = options;
  const salt = `load ${++loads}`;
  const file = join(dir, `load_fixed_${loads}.json`);
  const task: FixedTask = { ...load, salt, series, failedShareMax: 0.01 };
  writeFileSync(file, JSON.stringify(task), { mode: 0o600 });
  try {
    const program = fileURLToPath(new URL('load_fixed.js', import.meta.url));
    const result = JSON.parse(
      await runForOutput(process.execPath, [program, file], signal, anyCore),
    ) as FixedRateResult;
    const failures = Object.entries(result.failed).map(([why, count]) => `${count} of ${why}`);
    expect(failures.length === 0, `of ${result.sent} requests failed: ${failures.join(', ')}`);
    return result;
  } finally {
    rmSync(file, { force: true });
  }
}

/** Loads a server for the given time. Throws WrongAnswer if a request or connection failed. */
export async function load(series: Series, options: LoadOptions): Promise<LoadResult> {
  const run = options.tool === 'wrk' ? runWrk : runAutocannon;
  const output = await run(series, `load ${++loads}`, options);
  const line = output.split('\n').find((candidate) => candidate.startsWith('{'));
  const { failed, ...result } = JSON.parse(line ?? '{"failed":-1}') as Printed;
  expect(failed === 0, `${failed} of ${result.requests} requests failed under load`);
  return result;
}
