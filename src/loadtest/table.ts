/** Prints the results of a run in the terminal. */
import type { Results, SideResult } from './results.js';
import { warningsOf } from './verdict.js';

export const whole = (value: number): string => Math.round(value).toLocaleString('en');

export function table(rows: readonly (readonly string[])[], texts: number): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((cells) => (cells[i] ?? '').length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => (i < texts ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join('  ')
      .trimEnd();
  return rows.map(line).join('\n');
}

const columns = [
  '',
  'req/s',
  'core',
  'µs CPU',
  'Redis µs',
  'flusher µs',
  'Postgres µs',
  'scripts',
  'commands',
  'p50 ms',
  'p99 ms',
  'journal',
] as const;

function row(name: string, side: SideResult): string[] {
  const { rate, cpu, busy, scripts, commands, p50_ms, p99_ms, journal } = side;
  const us = (process: string) => {
    const value = cpu[process];
    return typeof value === 'number' ? value.toFixed(1) : '';
  };
  // Shows the figures of Redis, flush and Postgres only for Petrel. They mean nothing while another product (a peer) is
  // measured.
  const ours = side.role !== 'peer';
  return [
    `${name} ${side.label}`.trim(),
    whole(rate),
    busy === null ? '' : `${Math.round(busy * 100)} %`,
    us('server'),
    ...(ours
      ? [us('redis'), us('flush'), us('postgres'), scripts.toFixed(2), commands.toFixed(1)]
      : ['', '', '', '', '']),
    p50_ms.toFixed(2),
    p99_ms.toFixed(2),
    ours ? whole(journal) : '',
  ];
}

const ms = (value: number) => value.toFixed(2);
export const outcome = (met: boolean | null): string => (met === null ? 'unknown' : met ? 'met' : 'NOT MET');

function latencies(results: Results): string[] {
  if (results.latencies.length === 0) return [];
  const head = ['fixed rate', 'offered/s', 'answered/s', 'p50', 'p90', 'p99', 'p99.9', 'max ms', 'load late'];
  const rows = results.latencies.map(
    ({ scenario, label, offered, answered, ms: latency, late_ms, failed }) => [
      `${scenario} ${label}${failed > 0 ? ` (${failed} failed)` : ''}`,
      whole(offered),
      whole(answered),
      ...[latency.p50, latency.p90, latency.p99, latency.p999, latency.max, late_ms].map(ms),
    ],
  );
  return [table([head, ...rows], 1)];
}

function scaling(results: Results): string[] {
  if (results.scaling.length === 0) return [];
  const rows = results.scaling.map(({ fronts, rate, predicted, cpu, p99_ms }) => [
    `${fronts} ${fronts === 1 ? 'front' : 'fronts'}`,
    whole(rate),
    predicted === null ? '' : whole(predicted),
    predicted === null ? '' : `${Math.round((predicted / rate - 1) * 100)} %`,
    ...['server', 'redis', 'flush', 'postgres', 'load'].map((name) => (cpu[name] ?? 0).toFixed(1)),
    ms(p99_ms),
  ]);
  const head = [
    'sendMessage',
    'req/s',
    'predicted',
    'off by',
    'fronts µs',
    'Redis µs',
    'flusher µs',
    'Postgres µs',
    'load µs',
    'p99 ms',
  ];
  return [table([head, ...rows], 1)];
}

const megabytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MB`;

function soak({ soak: samples }: Results): string[] {
  if (samples.length === 0) return [];
  const names = Object.keys(samples[0]?.resident ?? {});
  const head = ['soak', 'req/s', ...names, 'Redis data', 'journal', 'errors', 'p99 ms'];
  const shown = samples.filter((_, i) => i % Math.max(1, Math.floor(samples.length / 12)) === 0);
  const last = samples.at(-1);
  if (last && shown.at(-1) !== last) shown.push(last);
  const rows = shown.map(({ at_s, rate, resident, redis_data, journal, errors, p99_ms }) => [
    `${Math.round(at_s)} s`,
    whole(rate),
    ...names.map((name) => megabytes(resident[name] ?? 0)),
    megabytes(redis_data),
    whole(journal),
    whole(errors),
    ms(p99_ms),
  ]);
  return [table([head, ...rows], 1)];
}

function counted({ findings }: Results): string[] {
  const free = findings.filter(({ met }) => met === null);
  if (free.length === 0) return [];
  return [
    table(
      free.map(({ proof, what, measured }) => [proof, what, measured]),
      3,
    ),
  ];
}

function goals({ goals: rows }: Results): string[] {
  if (rows.length === 0) return [];
  const missed = rows.filter(({ met }) => met === false).length;
  const cells = rows.map(({ proof, what, figure, goal, met }) => [
    proof,
    outcome(met),
    `goal ${goal}`,
    what,
    figure,
  ]);
  return [`${table(cells, 5)}\n${rows.length} goals, ${missed} not met`];
}

export function conditionsOf({ petrel, commit, machine, settings, seconds }: Results): string {
  const pairs = (values: Readonly<Record<string, unknown>>) =>
    Object.entries(values)
      .map(([name, value]) => `${name.replaceAll('_', ' ')} ${value}`)
      .join(', ');
  return `Petrel ${petrel}${commit ? ` (${commit})` : ''}; ${pairs(machine)}; ${pairs(settings)}; took ${Math.round(seconds)} s`;
}

/**
 * Returns the report of a run: a row for each measured server, then latencies, scaling and findings, and finally each
 * goal with its result.
 */
export function report(results: Results): string {
  const rows = results.scenarios.flatMap(({ name, sides }) => sides.map((side) => row(name, side)));
  const parts = [
    conditionsOf(results),
    ...(rows.length > 0 ? [table([columns, ...rows], 1)] : []),
    ...latencies(results),
    ...scaling(results),
    ...soak(results),
    ...counted(results),
    ...goals(results),
    ...warningsOf(results).map((warning) => `WARNING: ${warning}`),
    ...(results.ended ? [`The run ended early: ${results.ended}`] : []),
  ];
  return `${parts.join('\n\n')}\n`;
}
