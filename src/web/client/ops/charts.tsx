/** Shows the history of the installation as charts with axes, and as a table. */
import { type PointerEvent, useMemo, useState } from 'react';
import { bytes, clock, minute, ms, rate, span, time } from './format.js';
import { type HistoryRange, type Loaded, rangeNames } from './live.js';
import { type Column, Section, Table } from './parts.js';
import { quantile } from './rates.js';
import {
  byteTopOf,
  deliveryLines,
  type Line,
  lineOf,
  type Past,
  pastOf,
  perSecond,
  type Row,
  rowsOf,
  topOf,
} from './series.js';

interface Figure {
  title: string;
  format: (value: number | null | undefined) => string;
  lines: Line[];
  /** Returns the value at the upper end of the vertical axis. */
  top: (max: number) => number;
}

const perSecondText = (value: number | null | undefined) =>
  value === null || value === undefined ? '–' : `${rate(value)} /s`;

function figuresOf(past: Past): Figure[] {
  const p99 = lineOf(past, 'p99', ({ times }) => quantile(past.bounds, times, 0.99));
  const memory = lineOf(past, 'memory', (point) => point.redis_bytes);
  return [
    {
      title: 'Requests',
      format: perSecondText,
      lines: [perSecond(past, 'requests', ({ calls }) => calls)],
      top: topOf,
    },
    {
      title: 'Refused and failed requests',
      format: perSecondText,
      lines: [
        perSecond(past, '4xx', ({ refused }) => refused),
        perSecond(past, '5xx', ({ failed }) => failed),
        perSecond(past, '429', ({ slowed }) => slowed),
      ],
      top: topOf,
    },
    { title: 'Latency p99', format: ms, lines: [p99], top: topOf },
    {
      title: 'Delivery attempts by outcome',
      format: perSecondText,
      lines: deliveryLines(past),
      top: topOf,
    },
    {
      title: 'Journal lag',
      format: ms,
      lines: [lineOf(past, 'age', (point) => point.lag_ms)],
      top: topOf,
    },
    {
      title: 'Memory of Redis',
      format: (value) => bytes(value ?? undefined),
      lines: [memory],
      top: byteTopOf,
    },
  ];
}

/** Returns the SVG path of a line. A missing value leaves a gap. A value between two gaps becomes a dot. */
function pathOf(values: ReadonlyArray<number | null>, top: number): string {
  return values
    .map((value, i) => {
      if (value === null) return '';
      const at = `${i + 0.5} ${(100 - (Math.min(value, top) / top) * 100).toFixed(2)}`;
      return (values[i - 1] ?? null) === null ? `M${at}L${at}` : `L${at}`;
    })
    .join('');
}

/** Returns the index of the last point at which any of the lines has a value. */
const lastOf = (lines: readonly Line[]): number =>
  Math.max(0, ...lines.map(({ values }) => values.findLastIndex((value) => value !== null)));

const day_ms = 86_400_000;

const tick = (unixMs: number, width: number): string =>
  width > day_ms
    ? new Date(unixMs).toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
    : minute(unixMs);

const moment = (unixMs: number, width: number): string =>
  width >= day_ms ? time(unixMs / 1_000) : clock(unixMs);

const quarters = [0, 1, 2, 3, 4];

function Axes({ figure, top, past }: { figure: Figure; top: number; past: Past }) {
  const width = past.points.length * past.step;
  return (
    <>
      <div className="axis-y" aria-hidden="true">
        {[top, top / 2, 0].map((value) => (
          <span key={value}>{value === 0 ? '0' : figure.format(value)}</span>
        ))}
      </div>
      <div className="axis-x" aria-hidden="true">
        {quarters.map((n) => (
          <span key={n}>{tick(past.start + (width * n) / 4, width)}</span>
        ))}
      </div>
    </>
  );
}

interface AreaProps {
  lines: readonly Line[];
  top: number;
  size: number;
  selected: number | null;
  select: (point: number | null) => void;
  /**
   * `label` is the accessible name of the chart. `spoken` is the text that screen readers read for the selected point.
   */
  label: string;
  spoken: string;
}

/** Draws the lines below an invisible range input. With this input, people can select a point by keyboard too. */
function Area({ lines, top, size, selected, select, label, spoken }: AreaProps) {
  const paths = useMemo(() => lines.map(({ values }) => pathOf(values, top)), [lines, top]);
  const point = (event: PointerEvent<HTMLInputElement>) => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    const share = (event.clientX - left) / Math.max(width, 1);
    select(Math.min(size - 1, Math.max(0, Math.floor(share * size))));
  };
  const ticks = quarters.map((n) => `M${(size * n) / 4} 0V100`).join('');
  return (
    <div className="area">
      <input
        type="range"
        min={0}
        max={size - 1}
        value={selected ?? lastOf(lines)}
        aria-label={label}
        aria-valuetext={spoken}
        onChange={(event) => select(Number(event.target.value))}
        onPointerMove={point}
        onPointerLeave={() => select(null)}
        onBlur={() => select(null)}
      />
      <svg viewBox={`0 0 ${size} 100`} preserveAspectRatio="none" aria-hidden="true">
        <path className="grid" d={`M0 0H${size}M0 50H${size}M0 100H${size}${ticks}`} />
        {paths.map((path, i) => (
          <path key={lines[i]?.name} className={`series series-${i}`} d={path} />
        ))}
        {selected !== null && <path className="cursor" d={`M${selected + 0.5} 0V100`} />}
      </svg>
    </div>
  );
}

function Legend({ lines, texts }: { lines: readonly Line[]; texts: readonly string[] }) {
  return (
    <ul className="legend" aria-hidden="true">
      {lines.map(({ name }, i) => (
        <li key={name}>
          <svg viewBox="0 0 24 4" aria-hidden="true">
            <path className={`series series-${i}`} d="M0 2H24" />
          </svg>
          {name.replaceAll('_', ' ')} <strong>{texts[i]}</strong>
        </li>
      ))}
    </ul>
  );
}

interface ChartProps {
  figure: Figure;
  past: Past;
  /** The point that is selected in all charts, or null for the latest point. */
  selected: number | null;
  select: (point: number | null) => void;
}

function Chart({ figure, past, selected, select }: ChartProps) {
  const { title, format, lines } = figure;
  const size = past.points.length;
  const top = figure.top(
    lines.reduce((max, { values }) => values.reduce<number>((a, b) => Math.max(a, b ?? 0), max), 0),
  );
  const at = selected ?? lastOf(lines);
  const when = moment(past.start + at * past.step, size * past.step);
  const texts = lines.map(({ values }) => format(values[at]));
  const spoken = lines.map(({ name }, i) => (lines.length > 1 ? `${name} ${texts[i]}` : texts[i])).join(', ');
  return (
    <figure className="chart">
      <figcaption>
        <span>{title}</span>
        <span className="muted" aria-hidden="true">
          {selected === null ? '' : when} {lines.length === 1 && <strong>{texts[0]}</strong>}
        </span>
      </figcaption>
      <div className="plot">
        <Axes {...{ figure, top, past }} />
        <Area
          {...{ lines, top, size, selected, select }}
          label={`${title}, point in time`}
          spoken={`${when}: ${spoken}`}
        />
      </div>
      {lines.length > 1 && <Legend lines={lines} texts={texts} />}
    </figure>
  );
}

const columns: ReadonlyArray<Column<Row>> = [
  { name: 'Requests', by: ({ calls }) => calls, show: ({ calls }) => perSecondText(calls), number: true },
  { name: '5xx', by: ({ failed }) => failed, show: ({ failed }) => perSecondText(failed), number: true },
  { name: 'p99', by: ({ p99 }) => p99 ?? -1, show: ({ p99 }) => ms(p99), number: true },
  {
    name: 'Delivered',
    by: ({ delivered }) => delivered,
    show: ({ delivered }) => perSecondText(delivered),
    number: true,
  },
  {
    name: 'Not delivered',
    by: ({ undelivered }) => undelivered,
    show: ({ undelivered }) => perSecondText(undelivered),
    number: true,
    wide: true,
  },
  {
    name: 'Journal lag',
    by: ({ lag_ms }) => lag_ms ?? -1,
    show: ({ lag_ms }) => ms(lag_ms),
    number: true,
    wide: true,
  },
  {
    name: 'Memory of Redis',
    by: ({ redis_bytes }) => redis_bytes ?? -1,
    show: ({ redis_bytes }) => bytes(redis_bytes),
    number: true,
    wide: true,
  },
];

function FigureTable({ past }: { past: Past }) {
  const [open, setOpen] = useState(false);
  const short = past.points.length * past.step < day_ms;
  const from: Column<Row> = {
    name: 'From',
    by: ({ at_ms }) => at_ms,
    show: ({ at_ms }) => (short ? minute(at_ms) : time(at_ms / 1_000)),
  };
  return (
    <details className="as-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Show as a table</summary>
      {open && (
        <Table
          label="Figures by time"
          rows={rowsOf(past)}
          id={({ at_ms }) => at_ms}
          columns={[from, ...columns]}
          first="From"
          empty="No figures yet."
        />
      )}
    </details>
  );
}

function AllCharts({ past }: { past: Past }) {
  const [selected, select] = useState<number | null>(null);
  const figures = useMemo(() => figuresOf(past), [past]);
  return (
    <>
      <div className="charts">
        {figures.map((figure) => (
          <Chart key={figure.title} {...{ figure, past, selected, select }} />
        ))}
      </div>
      <FigureTable past={past} />
    </>
  );
}

export function Charts({
  loaded: { history, failure },
  range,
  choose,
}: {
  loaded: Loaded;
  range: HistoryRange;
  choose: (range: HistoryRange) => void;
}) {
  const past = useMemo(() => history && pastOf(history), [history]);
  const ranges = history?.ranges ?? [range];
  return (
    <Section
      title="History"
      aside={
        <>
          {past && <span className="muted">a point every {span(past.step)}</span>}
          {(ranges.length > 1 || range !== '1h') && (
            <select
              aria-label="Range of the charts"
              value={range}
              onChange={(event) => choose(event.target.value as HistoryRange)}
            >
              {Object.entries(rangeNames).map(([value, name]) => (
                <option key={value} value={value}>
                  {name}
                </option>
              ))}
            </select>
          )}
        </>
      }
    >
      {past ? (
        <AllCharts past={past} />
      ) : (
        <p className={failure ? 'bad' : 'muted'}>{failure || 'Loading …'}</p>
      )}
    </Section>
  );
}
