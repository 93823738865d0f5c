/**
 * Renders the report of a run as a single page without external files. The page is for readers who did not start the
 * run.
 */
import { percentiles } from './latency_percentiles.js';
import { type Bar, barPlot, type Line, linePlot, safe } from './plots.js';
import type { LatencyPercentiles, LatencyResult, Results, ScenarioResult, SideResult } from './results.js';
import { whole } from './table.js';
import { type Trend, type TrendPoint, trend_points_max, trendsOf } from './trend.js';
import { shareOf, spreadOf, taken_share_max, verdictOf, warningsOf } from './verdict.js';

const style = `
:root{--ink:#1c2330;--soft:#5d6778;--line:#dde2ea;--back:#fff;--card:#f6f8fb;--good:#18794e;--bad:#b42318;
--s1:#9aa7bb;--s2:#2563c9;--s3:#d97706;--s4:#0d9488;--s5:#9333ea;--s6:#be123c}
@media (prefers-color-scheme:dark){:root{--ink:#e6eaf2;--soft:#9aa5b8;--line:#2c3442;--back:#12161d;--card:#1a2029;--good:#4cc38a;--bad:#ff8a80;
--s1:#64718a;--s2:#5b9bff;--s3:#f5a742;--s4:#2dd4bf;--s5:#c084fc;--s6:#fb7185}}
*{box-sizing:border-box}body{margin:0 auto;max-width:1080px;padding:32px 24px 64px;background:var(--back);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI","DejaVu Sans",sans-serif}
h1{font-size:28px;margin:0}ul{margin:6px 0 14px;padding-left:20px}h2{font-size:20px;margin:44px 0 4px}p{margin:6px 0 14px;max-width:74ch}.soft,.m{color:var(--soft);fill:var(--soft)}
svg{display:block;width:100%;height:auto;font-size:12.5px;fill:var(--ink)}svg .b{font-weight:600;font-size:13.5px}svg .m{font-size:11.5px}
svg .g{stroke:var(--line)}figure{margin:12px 0;padding:18px;background:var(--card);border-radius:8px}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:13.5px}th,td{text-align:left;padding:6px 10px 6px 0;border-bottom:1px solid var(--line);vertical-align:top}
th{font-weight:600;color:var(--soft)}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.goals td:nth-child(4){white-space:nowrap}.yes{color:var(--good);font-weight:600;white-space:nowrap}.no{color:var(--bad);font-weight:600;white-space:nowrap}dl{display:grid;grid-template-columns:max-content 1fr;gap:2px 18px;margin:12px 0}
dt{color:var(--soft)}dd{margin:0}.sums{display:flex;gap:14px;flex-wrap:wrap;margin:20px 0}.sum{background:var(--card);border-radius:8px;padding:12px 18px;min-width:130px}
.sum b{display:block;font-size:24px}.early{border-left:4px solid var(--bad);padding:8px 14px;background:var(--card)}.verdict{white-space:normal;font-size:20px;font-weight:600;margin-top:18px}`;

type Cell = string | { readonly html: string } | number;
const cell = (value: Cell, tag: 'td' | 'th', numeric: boolean) =>
  `<${tag}${numeric ? ' class="n"' : ''}>${typeof value === 'object' ? value.html : safe(String(value))}</${tag}>`;

/** Renders a table. The first `texts` columns contain text, and the others contain numbers. */
function tableOf(head: readonly string[], rows: readonly (readonly Cell[])[], texts: number): string {
  const line = (cells: readonly Cell[], tag: 'td' | 'th') =>
    `<tr>${cells.map((value, i) => cell(value, tag, i >= texts)).join('')}</tr>`;
  return `<div class="wide"><table><thead>${line(head, 'th')}</thead><tbody>${rows.map((row) => line(row, 'td')).join('')}</tbody></table></div>`;
}

const section = (title: string, words: string, ...parts: readonly string[]) =>
  `<section><h2>${safe(title)}</h2><p class="soft">${words}</p>${parts.join('')}</section>`;
const figure = (plot: string) => `<figure>${plot}</figure>`;
const outcome = (met: boolean | null): Cell =>
  met === null ? '' : { html: `<span class="${met ? 'yes' : 'no'}">${met ? 'met' : 'not met'}</span>` };
const pair = ([name, value]: readonly [string, unknown]) =>
  `<dt>${safe(name.replaceAll('_', ' '))}</dt><dd>${safe(String(value))}</dd>`;

function goals({ goals: rows }: Results): string {
  if (rows.length === 0) return '';
  return section(
    'Goals',
    'The goals of the project, and the results of this run. “Compared with the floor” is a ratio: 1 is as fast as a program that does only the minimum.',
    tableOf(
      ['', 'what', 'found', 'goal', ''],
      rows.map(({ proof, what, figure: found, goal, met }) => [proof, what, found, goal, outcome(met)]),
      5,
    ).replace('<table>', '<table class="goals">'),
  );
}

const roleSeries: Record<SideResult['role'], number> = { base: 0, subject: 1, peer: 2 };

/**
 * Formats the ratio of the server to the minimal server (the floor). Uses the ratio that decides whether the goal is
 * reached, so that a page never shows two different ratios for one scenario.
 */
function noteOf(scenario: ScenarioResult): string {
  const share = shareOf(scenario);
  if (share === null) return scenario.title.length > 44 ? '' : scenario.title;
  const spread = spreadOf(scenario.ratios);
  const rounds = spread === null ? '' : `, rates ${spread.least.toFixed(2)} to ${spread.most.toFixed(2)}`;
  return `${share.toFixed(2)} of ${scenario.sides[0]?.label ?? ''}${rounds}`;
}

function spreadText(rates: readonly number[]): string {
  const spread = spreadOf(rates);
  return spread === null ? '' : `${whole(spread.least)} to ${whole(spread.most)}`;
}

function rates({ scenarios }: Results): string {
  if (scenarios.length === 0) return '';
  const groups = scenarios.map((scenario) => ({
    label: scenario.name,
    note: noteOf(scenario),
    bars: scenario.sides.map(
      ({ label, rate, role }): Bar => ({
        label,
        value: rate,
        shown: `${whole(rate)}/s`,
        series: roleSeries[role],
      }),
    ),
  }));
  const processes = ['server', 'redis', 'flush', 'postgres', 'load'];
  const us = (side: SideResult, name: string) => side.cpu[name]?.toFixed(1) ?? '';
  return section(
    'Requests a second',
    'Each connection has one request in flight and sends the next after the answer. Grey bars are the baseline: the floor, a bare server that runs the same Redis script without any checks, or the small case. The sides took turns; bars show the median of all rounds. The share beside a name is the lower one of the ratios by rate and by CPU time, as in the goals, so it can be lower than the quotient of two bars. The lowest and highest ratio of rates in a round follow.',
    figure(barPlot('Requests per second by scenario', groups)),
    '<p class="soft">Cost per request: microseconds of CPU time by process, from the operating system, and the scripts and commands that Redis ran.</p>',
    tableOf(
      [
        '',
        '',
        'lowest to highest round',
        'other programs',
        'server µs',
        'Redis µs',
        'flusher µs',
        'Postgres µs',
        'load µs',
        'scripts',
        'commands',
        'core used',
      ],
      scenarios.flatMap(({ name, sides }) =>
        sides.map((side) => [
          name,
          side.label,
          spreadText(side.rates),
          side.taken === undefined ? '' : `${Math.round(Math.max(...side.taken) * 100)} %`,
          ...processes.map((process) =>
            side.role === 'peer' && !['server', 'load'].includes(process) ? '' : us(side, process),
          ),
          ...(side.role === 'peer' ? ['', ''] : [side.scripts.toFixed(2), side.commands.toFixed(1)]),
          side.busy === null ? '' : `${Math.round(side.busy * 100)} %`,
        ]),
      ),
      2,
    ),
  );
}

const shownPercentile: Record<keyof LatencyPercentiles, string> = {
  p50: '50 %',
  p75: '75 %',
  p90: '90 %',
  p95: '95 %',
  p99: '99 %',
  p999: '99.9 %',
  max: 'slowest',
};

function comparedAt(latencies: readonly LatencyResult[], scenario: string): LatencyResult[] {
  const own = latencies.filter((each) => each.scenario === scenario);
  const base = own.find(({ role }) => role === 'base');
  return base ? own.filter(({ offered }) => offered === base.offered) : own;
}

function byPercentile({ latencies }: Results): string {
  const scenarios = [...new Set(latencies.map(({ scenario }) => scenario))];
  if (scenarios.length === 0) return '';
  const plots = scenarios.map((scenario) => {
    const compared = comparedAt(latencies, scenario);
    const lines = compared.map(
      ({ label, offered, ms }): Line => ({
        label: `${label} at ${whole(offered)}/s`,
        points: percentiles.map(([name], i) => [i, ms[name]] as const),
      }),
    );
    const names = percentiles.map(([name]) => shownPercentile[name]);
    const axes = { x: 'share of the answers', y: 'ms', names, log: true };
    return `<h3>${safe(scenario)}</h3>${figure(linePlot(`Latency of ${scenario} by percentile`, lines, axes))}`;
  });
  return section(
    'Latency by percentile',
    'Requests are due at a fixed rate, independent of earlier answers, and their latency counts from the due time. Half of the calls were answered within the time at 50 %, 99 of 100 within the time at 99 %. The vertical scale is logarithmic.',
    ...plots,
  );
}

function byLoad({ latencies }: Results): string {
  const lines = [
    ...new Set(latencies.map(({ scenario, label, role }) => `${scenario}\n${label}\n${role}`)),
  ].flatMap((key) => {
    const [scenario, label, role] = key.split('\n');
    const own = latencies
      .filter((each) => each.scenario === scenario && each.label === label && role === 'subject')
      .sort((a, b) => a.offered - b.offered);
    if (own.length < 2) return [];
    const of = (name: 'p50' | 'p99', dashed: boolean): Line => ({
      label: `${scenario}, ${shownPercentile[name]}`,
      points: own.map(({ offered, ms }) => [offered, ms[name]] as const),
      dashed,
    });
    return [{ scenario: scenario as string, lines: [of('p50', true), of('p99', false)] }];
  });
  if (lines.length === 0) return '';
  return section(
    'Latency against offered load',
    'Fixed rates from low to near the highest rate that the service answered. Where a line rises, requests begin to queue.',
    ...lines.map(({ scenario, lines: own }) =>
      figure(
        linePlot(`Latency of ${scenario} against offered load`, own, {
          x: 'requests offered per second',
          y: 'ms',
          log: true,
        }),
      ),
    ),
  );
}

function scaling({ scaling: rows, machine }: Results): string {
  if (rows.length === 0) return '';
  const at = (of: (row: (typeof rows)[number]) => number | null): Line['points'] =>
    rows.flatMap((row) => {
      const value = of(row);
      return value === null ? [] : [[row.fronts, value] as const];
    });
  const lines: Line[] = [
    { label: 'predicted by the model', points: at(({ predicted }) => predicted), dashed: true },
    { label: 'measured', points: at(({ rate }) => rate) },
  ];
  return section(
    'Scaling by nodes',
    `sendMessage over several fronts of this one machine, whose ${safe(String(machine.cores ?? ''))} cores are shared by fronts, Redis, Postgres and the load. Once all cores are busy, more fronts do not help. The model predicts each rate from the costs at one front.`,
    figure(
      linePlot('Requests per second by number of fronts', lines, { x: 'fronts', y: 'requests per second' }),
    ),
  );
}

function counted({ findings }: Results): string {
  if (findings.length === 0) return '';
  return section(
    'Counted',
    'Counted values: round trips, bytes and costs.',
    tableOf(
      ['', 'what', 'found', 'goal', ''],
      findings.map(({ proof, what, measured, goal, met }) => [proof, what, measured, goal, outcome(met)]),
      5,
    ),
  );
}

function soak({ soak: samples }: Results): string {
  if (samples.length === 0) return '';
  const over = (label: string, of: (sample: (typeof samples)[number]) => number): Line => ({
    label,
    points: samples.map((sample) => [sample.at_s / 60, of(sample)] as const),
  });
  const names = Object.keys(samples[0]?.resident ?? {});
  const memory = [
    ...names.map((name) => over(name, ({ resident }) => (resident[name] ?? 0) / 2 ** 20)),
    over('data of Redis', ({ redis_data }) => redis_data / 2 ** 20),
  ];
  const waiting = [over('entries waiting for Postgres', ({ journal }) => journal)];
  return section(
    'Soak',
    'A mix of calls at a share of the highest rate over a longer time, while bots and chats are created and deleted. After the warm-up, the lines should stay level.',
    figure(linePlot('Memory over time', memory, { x: 'minutes', y: 'MB' })),
    figure(linePlot('Journal over time', waiting, { x: 'minutes', y: 'entries' })),
    figure(linePlot('p99 over time', [over('p99', ({ p99_ms }) => p99_ms)], { x: 'minutes', y: 'ms' })),
  );
}

/** Draws the trend of one value over several runs. A star marks a run during which other programs ran. */
function trendPlot(
  { scenario, points }: Trend,
  name: string,
  unit: string,
  of: (point: TrendPoint) => number | null,
) {
  const values = points.flatMap((point, i) => {
    const value = of(point);
    return value === null ? [] : [[i, value] as const];
  });
  if (values.length < 2) return '';
  const last = points.length - 1;
  // Only the first and the last label fit below the plot. The table shows all labels.
  const names = points.map(({ label, disturbed }, i) =>
    i === 0 || i === last ? `${label}${disturbed ? ' *' : ''}` : '',
  );
  const title = `${scenario}: ${name}`;
  return figure(linePlot(title, [{ label: title, points: values }], { x: 'runs', y: unit, names }));
}

function trend(results: Results, kept: readonly Results[]): string {
  const trends = trendsOf(results, kept);
  if (trends.length === 0) return '';
  const share = (point: TrendPoint) => point.share;
  return section(
    'Trend over commits',
    `Kept results of this machine with the same load, oldest first, at most ${trend_points_max} runs. A star marks a run during which other programs took more than ${Math.round(taken_share_max * 100)} % of the machine.`,
    ...trends.map(
      (each) =>
        trendPlot(each, 'share of the floor', '', share) ||
        trendPlot(each, 'CPU time of the server per request', 'µs', (point) => point.server_us),
    ),
    tableOf(
      ['', 'run', 'share of the floor', 'server µs'],
      trends.flatMap(({ scenario, points }) =>
        points.map(({ label, disturbed, share: value, server_us }) => [
          scenario,
          `${label}${disturbed ? ' *' : ''}`,
          value === null ? '' : value.toFixed(2),
          server_us === null ? '' : server_us.toFixed(1),
        ]),
      ),
      2,
    ),
  );
}

function head(results: Results): string {
  const { good, words } = verdictOf(results);
  const missed = results.goals.filter(({ met }) => met === false);
  const kind = good === null ? '' : good ? ' yes' : ' no';
  const warnings = warningsOf(results).map(
    (warning) => `<p class="early" role="alert"><b>Warning.</b> ${safe(warning)}</p>`,
  );
  const ended = results.ended ? `<p class="early">The run ended early: ${safe(results.ended)}</p>` : '';
  const list =
    missed.length === 0
      ? ''
      : `<ul>${missed.map(({ proof, what, figure }) => `<li>${safe(`${proof}, ${what}: ${figure}`)}</li>`).join('')}</ul>`;
  return `${warnings.join('')}${ended}<p class="verdict${kind}">${safe(words)}</p>${list}`;
}

/** Renders the page. `kept` has the results of earlier runs for the trend. */
export function pageOf(results: Results, kept: readonly Results[] = []): string {
  const { petrel, commit, made_at, machine, settings, goals: rows, seconds } = results;
  const met = rows.filter((row) => row.met === true).length;
  const best = results.scenarios
    .find(({ name }) => name === 'sendMessage')
    ?.sides.find(({ role }) => role === 'subject');
  const sums: ReadonlyArray<readonly [string, string]> = [
    ...(rows.length > 0 ? [[`${met} of ${rows.length}`, 'goals met'] as const] : []),
    ...(best ? [[`${whole(best.rate)}/s`, 'sendMessage on one front'] as const] : []),
    [`${Math.floor(seconds / 60)} min ${seconds % 60} s`, 'duration of the run'],
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Petrel bench, ${safe(made_at.slice(0, 10))}</title><style>${style}</style></head><body>
<h1>Petrel bench</h1>
${head(results)}
<p class="soft">Petrel ${safe(petrel)}${commit ? `, commit ${safe(commit)}` : ''}, measured ${safe(made_at.replace('T', ' ').slice(0, 16))} UTC. A wrong answer would have ended the run: what was sent was checked against what the service then showed.</p>
<div class="sums">${sums.map(([value, name]) => `<div class="sum"><b>${safe(value)}</b>${safe(name)}</div>`).join('')}</div>
${goals(results)}${trend(results, kept)}${rates(results)}${byPercentile(results)}${byLoad(results)}${scaling(results)}${soak(results)}${counted(results)}
${section('Environment', 'Results depend on this machine and these settings. Ratios to the floor transfer better to other machines than rates.', `<dl>${[...Object.entries(machine), ...Object.entries(settings)].map(pair).join('')}</dl>`)}
</body></html>
`;
}
