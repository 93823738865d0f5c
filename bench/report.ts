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

/** Share of a core above which a server counts as fully used. */
const saturated = 0.9;

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

/** Where the server's core was not the limit, rates say how fast the rest is: the CPU time a request then decides. */
function share({ ratio, cpuRatio }: Measured): number {
  return Number.isNaN(cpuRatio) ? ratio : Math.min(ratio, cpuRatio);
}

function verdict(measured: Measured): string {
  const { name, proof, goal, ratio, ratios, cpuRatio, drained_s: drained, service, floor } = measured;
  const of = (value: number) => value.toFixed(3);
  const limit =
    Math.min(service.busy, floor.busy) < saturated ? ' (its core was not the limit: go by CPU time)' : '';
  return (
    `${proof} ${name}: ${of(share(measured))} of the floor, goal ${goal.toFixed(2)}` +
    `${share(measured) < goal ? ', falls short' : ''}. By rate ${of(ratio)}${limit}, by CPU time a request ` +
    `${of(cpuRatio)}; rounds ${ratios.map(of).join(' ')}; journal empty ${drained.toFixed(1)} s after the last`
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
