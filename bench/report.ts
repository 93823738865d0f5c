/** What a run found, for the terminal. */
import type { Measured, Round } from './measure.js';
import type { Finding } from './surveys/survey.js';

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

/** Texts to the left, the numbers behind them to the right. */
function table(rows: readonly (readonly string[])[], texts: number): string {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((cells) => (cells[i] ?? '').length)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, i) => (i < texts ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0)))
      .join('  ')
      .trimEnd();
  return rows.map(line).join('\n');
}

/** Where the server's core was not the limit, rates say how fast the rest is: the CPU time a request then decides. */
function share({ ratio, cpuRatio }: Measured): number {
  return Number.isNaN(cpuRatio) ? ratio : Math.min(ratio, cpuRatio);
}

const of = (value: number) => value.toFixed(3);
const outcome = (met: boolean) => (met ? 'met' : 'NOT MET');

function verdict(measured: Measured): string {
  const { name, proof, goal, labels, ratio, ratios, cpuRatio, growth, subject, base } = measured;
  const by =
    `By rate ${of(ratio)}, by CPU time a request ${of(cpuRatio)}; rounds ${ratios.map(of).join(' ')}; ${measured.connections} connections; ` +
    `journal empty ${measured.drained_s.toFixed(1)} s after the last`;
  if ('growth' in goal) {
    const what = goal.of === 'server' ? 'of the server' : 'of server and Redis together';
    return (
      `${proof} ${name}: ${labels[1]} costs ${of(growth[goal.of])} × the CPU time of ${labels[0]}, ${what}, ` +
      `goal ${goal.growth.toFixed(2)}: ${outcome(growth[goal.of] <= goal.growth)} (server ${of(growth.server)}, ` +
      `Redis ${of(growth.redis)}). ${by}`
    );
  }
  const limit =
    Math.min(subject.busy, base.busy) < saturated ? ' (its core was not the limit: go by CPU time)' : '';
  const own = share(measured);
  const first = `${proof} ${name}: ${of(own)} of the floor, goal ${goal.share.toFixed(2)}: ${outcome(own >= goal.share)}${limit}. ${by}`;
  if (goal.redisMost === undefined) return first;
  const redis = subject.redisCpu;
  return `${first}\n${proof} ${name}: ${redis.toFixed(1)} µs CPU of Redis a call, goal ${goal.redisMost}: ${outcome(redis <= goal.redisMost)}`;
}

/** Medians of the rounds: one row a side, one sentence a scenario. `journal` is the most that ever waited. */
export function report(measured: readonly Measured[], findings: readonly Finding[]): string {
  const rows = measured.flatMap(({ name, labels, base, subject }) => [
    row(`${name} ${labels[0]}`, base),
    row(`${name} ${labels[1]}`, subject),
  ]);
  const counted = findings.map(({ proof, what, measured: found, goal, met }) => [
    proof,
    what,
    found,
    `goal ${goal}`,
    outcome(met),
  ]);
  return [
    ...(rows.length > 0 ? [table([columns, ...rows], 1), measured.map(verdict).join('\n')] : []),
    ...(counted.length > 0 ? [table(counted, 5)] : []),
  ]
    .map((part) => `${part}\n`)
    .join('\n');
}
