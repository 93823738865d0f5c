/** Draws grouped bars and lines as inline SVG, which needs no script, font or other file. */

export const safe = (text: string): string => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

const colour = (i: number) => `var(--s${(i % 6) + 1})`;

const n1 = (value: number) => Number(value.toFixed(1));

/** Shortens a number: 12,300 becomes 12.3 k. */
export function short(value: number): string {
  if (value >= 1e6) return `${Number((value / 1e6).toPrecision(3))} M`;
  if (value >= 1e4) return `${Number((value / 1e3).toPrecision(3))} k`;
  if (value >= 100) return Math.round(value).toLocaleString('en');
  return String(Number(value.toPrecision(3)));
}

/** Returns round numbers for an axis, from 0 up to at least `max`. */
function ticks(max: number): number[] {
  const rough = max / 4 || 1;
  const magnitude = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((each) => each * magnitude >= rough) ?? 10) * magnitude;
  return Array.from({ length: Math.ceil(max / step) + 1 }, (_, i) => i * step);
}

const text = (x: number, y: number, words: string, more = '') =>
  `<text x="${n1(x)}" y="${n1(y)}" ${more}>${safe(words)}</text>`;

const width = 860;

function svg(height: number, label: string, parts: readonly string[]): string {
  return `<svg viewBox="0 0 ${width} ${height}" role="img" aria-label="${safe(label)}">${parts.join('')}</svg>`;
}

export interface Bar {
  readonly label: string;
  readonly value: number;
  readonly shown: string;
  readonly series: number;
}

export interface BarGroup {
  readonly label: string;
  readonly note: string;
  readonly bars: readonly Bar[];
}

/** Each group has its own scale, so bars of different groups are not comparable. */
export function barPlot(label: string, groups: readonly BarGroup[]): string {
  const [left, right, bar, gap] = [250, 215, 20, 18];
  const parts: string[] = [];
  let y = 4;
  for (const group of groups) {
    const most = Math.max(...group.bars.map(({ value }) => value), Number.MIN_VALUE);
    parts.push(text(0, y + 14, group.label, 'class="b"'), text(0, y + 31, group.note, 'class="m"'));
    for (const { value, shown, series, label: name } of group.bars) {
      const long = Math.max(1, (value / most) * (width - left - right));
      parts.push(
        `<rect x="${left}" y="${y}" width="${n1(long)}" height="${bar - 4}" rx="2" fill="${colour(series)}"><title>${safe(`${name}: ${shown}`)}</title></rect>`,
        text(left + long + 8, y + 12.5, `${name}: ${shown}`),
      );
      y += bar;
    }
    y += Math.max(gap, 38 + gap - group.bars.length * bar);
  }
  return svg(y, label, parts);
}

export interface Line {
  readonly label: string;
  readonly points: ReadonlyArray<readonly [x: number, y: number]>;
  readonly dashed?: boolean;
}

export interface Axes {
  readonly x: string;
  readonly y: string;
  readonly names?: readonly string[];
  readonly log?: boolean;
}

function yTicks(lines: readonly Line[], log: boolean): number[] {
  const values = lines.flatMap(({ points }) => points.map(([, y]) => y));
  const most = Math.max(...values, Number.MIN_VALUE);
  if (!log) return ticks(most);
  const least = Math.min(...values.filter((value) => value > 0), most);
  const from = Math.floor(Math.log10(least));
  const until = Math.max(from + 1, Math.ceil(Math.log10(most)));
  return Array.from({ length: until - from + 1 }, (_, i) => 10 ** (from + i));
}

export function linePlot(label: string, lines: readonly Line[], axes: Axes): string {
  const { names, log = false } = axes;
  const [left, right, bottom] = [64, 20, 44];
  const legendRows = Math.ceil(lines.length / 3);
  const top = 12 + legendRows * 20;
  const height = top + 230 + bottom;
  const ys = yTicks(lines, log);
  const xMost = Math.max(...lines.flatMap(({ points }) => points.map(([x]) => x)), Number.MIN_VALUE);
  const xs = names ? names.map((_, i) => i) : ticks(xMost);
  const [xEnd, yEnd] = [xs.at(-1) ?? 1, ys.at(-1) ?? 1];
  const scale = (value: number) => (log ? Math.log10(Math.max(value, ys[0] ?? 1)) : value);
  const [low, high] = [scale(ys[0] ?? 0), scale(yEnd)];
  const px = (x: number) => left + (x / (xEnd || 1)) * (width - left - right);
  const py = (y: number) =>
    height - bottom - ((scale(y) - low) / (high - low || 1)) * (height - bottom - top);
  const parts = [
    ...ys.map(
      (y) =>
        `<line class="g" x1="${left}" x2="${width - right}" y1="${n1(py(y))}" y2="${n1(py(y))}"/>${text(left - 8, py(y) + 4, short(y), 'text-anchor="end" class="m"')}`,
    ),
    ...xs.map((x) => {
      const anchor = x === xEnd ? 'end' : 'middle';
      return text(px(x), height - bottom + 18, names?.[x] ?? short(x), `text-anchor="${anchor}" class="m"`);
    }),
    text(width - right, height - 6, axes.x, 'text-anchor="end" class="m"'),
    text(0, top - 4, axes.y, 'class="m"'),
  ];
  for (const [i, { label: name, points, dashed }] of lines.entries()) {
    const [x, y] = [left + (i % 3) * 262, 10 + Math.floor(i / 3) * 20];
    const stroke = `stroke="${colour(i)}"${dashed ? ' stroke-dasharray="5 4"' : ''}`;
    parts.push(
      `<line x1="${x}" x2="${x + 18}" y1="${y}" y2="${y}" ${stroke} stroke-width="3"/>`,
      text(x + 24, y + 4, name),
      `<polyline fill="none" ${stroke} stroke-width="2" points="${points.map((point) => `${n1(px(point[0]))},${n1(py(point[1]))}`).join(' ')}"/>`,
      ...points.map(
        (point) =>
          `<circle cx="${n1(px(point[0]))}" cy="${n1(py(point[1]))}" r="3" fill="${colour(i)}"><title>${safe(`${name}: ${short(point[1])} at ${names?.[point[0]] || short(point[0])}`)}</title></circle>`,
      ),
    );
  }
  return svg(height, label, parts);
}
