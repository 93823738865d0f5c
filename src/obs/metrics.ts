/**
 * Defines a process's Prometheus metrics. Labels have fixed sets of values. Frequent events are counted in plain
 * numbers, which become metrics only when the metrics are read. Looking up labels for each event would cost more than a
 * short call.
 */
import { collectDefaultMetrics, Gauge, type Metric, Registry } from 'prom-client';
import { type Distribution, durationBounds } from './distribution.js';

type Rows<V> = Iterable<readonly [labels: readonly string[], value: V]>;

interface Named {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
}

type Values = number | Rows<number>;

/**
 * A metric whose value is read whenever somebody requests the metrics. The request waits for the promise of `read`, so
 * this promise must settle within seconds.
 */
export type Figure = Named &
  (
    | { readonly kind: 'gauge' | 'counter'; readonly read: () => Values | Promise<Values> }
    | { readonly kind: 'histogram'; readonly read: () => Rows<Distribution> }
  );

/**
 * Creates metrics that have a single value each. A metric whose name ends in `_total` is a counter, and any other is a
 * gauge. `read` returns all values.
 */
export const figuresOf = <N extends string>(
  helps: Readonly<Record<N, string>>,
  read: () => Readonly<Record<N, number>> | Promise<Readonly<Record<N, number>>>,
): Figure[] =>
  Object.entries<string>(helps).map(([name, help]) => ({
    ...{ kind: name.endsWith('_total') ? 'counter' : 'gauge', name, help },
    read: async () => (await read())[name as N],
  }));

export type Metrics = ReturnType<typeof createMetrics>;

export interface BuildInfo {
  readonly version: string;
  readonly engine: string;
  readonly engineVersion: string;
}

interface Sample {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const labelled = (names: readonly string[], values: readonly string[]) =>
  Object.fromEntries(names.map((name, i) => [name, values[i] as string]));

function* bucketsOf(
  name: string,
  labels: Sample['labels'],
  { counts, sumMs }: Distribution,
): Iterable<Sample> {
  let total = 0;
  for (const [i, count] of counts.entries()) {
    total += count;
    const le = i < durationBounds.length ? String(durationBounds[i]) : '+Inf';
    yield { metricName: `${name}_bucket`, labels: { ...labels, le }, value: total };
  }
  yield { metricName: `${name}_sum`, labels, value: sumMs / 1_000 };
  yield { metricName: `${name}_count`, labels, value: total };
}

async function samplesOf(figure: Figure): Promise<readonly Sample[]> {
  const { name, labels = [] } = figure;
  if (figure.kind === 'histogram')
    return [...figure.read()].flatMap(([values, distribution]) => [
      ...bucketsOf(name, labelled(labels, values), distribution),
    ]);
  const read = await figure.read();
  if (typeof read === 'number') return [{ labels: {}, value: read }];
  return [...read].map(([values, value]) => ({ labels: labelled(labels, values), value }));
}

export function createMetrics(info: BuildInfo) {
  const registry = new Registry();
  // Measures the event loop every 100 ms. With the default of 10 ms, an idle process would wake up 100 times a second.
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
  new Gauge({
    name: 'petrel_build_info',
    help: 'Version of the program and the HTTP engine it runs on; always 1.',
    labelNames: ['version', 'engine', 'engine_version'],
    registers: [registry],
  }).set(
    {
      version: info.version,
      engine: info.engine,
      engine_version: info.engineVersion,
    },
    1,
  );
  return {
    text: () => registry.metrics(),
    contentType: registry.contentType as string,
    register(figure: Figure) {
      const { name, help, kind } = figure;
      // Implements the registry's interface. Unlike the library's own metrics, this metric stores no values.
      const metric = {
        name,
        get: async () => ({ name, help, type: kind, values: await samplesOf(figure), aggregator: 'sum' }),
        reset: () => undefined,
      };
      registry.registerMetric(metric as unknown as Metric);
    },
  };
}
