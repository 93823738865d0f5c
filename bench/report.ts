/** What a run found, for the terminal. */
import type { Measured, Round } from './measure.js';

const columns = [
  '',
  'req/s',
  'µs CPU',
  'core',
  'Redis µs',
  'scripts',
  'p50 ms',
  'p99 ms',
  'journal',
] as const;

function row(name: string, round: Round): string[] {
  const { rate, cpu, busy, redisCpu, scripts, p50_ms, p99_ms, lag } = round;
  return [
    name,
    Math.round(rate).toLocaleString('en'),
    cpu.toFixed(2),
    `${Math.round(busy * 100)} %`,
    redisCpu.toFixed(2),
    scripts.toFixed(2),
    p50_ms.toFixed(2),
    p99_ms.toFixed(2),
    lag.toLocaleString('en'),
  ];
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = columns.map((_, i) => Math.max(...rows.map((cells) => (cells[i] ?? '').length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join('  ');
  return rows.map(line).join('\n');
}

function verdict({ name, proof, goal, ratio, ratios, cpuRatio, drained_s: drained }: Measured): string {
  const of = (value: number) => value.toFixed(3);
  const all = ratios.map(of).join(' ');
  return (
    `${proof} ${name}: ${of(ratio)} of the floor's rate (goal ${goal.toFixed(2)}${ratio < goal ? ', falls short' : ''}); ` +
    `by CPU time ${of(cpuRatio)}; rounds ${all}; journal empty ${drained.toFixed(1)} s after the last`
  );
}

/** Medians of the rounds: one row a server, one sentence a scenario. `journal` is the most that ever waited. */
export function report(measured: readonly Measured[]): string {
  const rows = measured.flatMap(({ name, floor, service }) => [
    row(`${name} floor`, floor),
    row(`${name} service`, service),
  ]);
  return `${table([columns, ...rows])}\n\n${measured.map(verdict).join('\n')}\n`;
}
