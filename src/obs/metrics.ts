/**
 * Prometheus metrics of one process, with bounded label values. Frequent events are counted as plain numbers where they
 * happen and read on a scrape, because looking up a set of labels costs more than a short call.
 */
import { collectDefaultMetrics, Gauge, type Metric, Registry } from 'prom-client';
import { type Distribution, durationBounds } from './distribution.js';

type Rows<V> = Iterable<readonly [labels: readonly string[], value: V]>;

interface Named {
  readonly name: string;
  readonly help: string;
  /** Absent for a single value without labels. */
  readonly labels?: readonly string[];
}

/** A metric of the process, read on each scrape. */
export type Figure = Named &
  (
    | { readonly kind: 'gauge' | 'counter'; readonly read: () => number | Rows<number> }
    | { readonly kind: 'histogram'; readonly read: () => Rows<Distribution> }
  );

/** A single value that only grows. */
export const counter = (name: string, help: string, read: () => number): Figure => ({
  ...{ kind: 'counter', name, help, read },
});
/** A single value that rises and falls. */
export const gauge = (name: string, help: string, read: () => number): Figure => ({
  ...{ kind: 'gauge', name, help, read },
});

export interface Metrics {
  /** Text of the exposition format. */
  text(): Promise<string>;
  readonly contentType: string;
  tell(figure: Figure): void;
}

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

function* samplesOf(figure: Figure): Iterable<Sample> {
  const { name, labels = [] } = figure;
  if (figure.kind === 'histogram') {
    for (const [values, distribution] of figure.read())
      yield* bucketsOf(name, labelled(labels, values), distribution);
    return;
  }
  const read = figure.read();
  if (typeof read === 'number') yield { labels: {}, value: read };
  else for (const [values, value] of read) yield { labels: labelled(labels, values), value };
}

export function createMetrics(info: BuildInfo): Metrics {
  const registry = new Registry();
  // The default precision of 10 ms wakes an idle process a hundred times a second.
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
    contentType: registry.contentType,
    tell(figure) {
      const { name, help, kind } = figure;
      // The interface that a registry needs. Metrics of the library keep a value per set of labels; ours keep none.
      const metric = {
        name,
        get: async () => ({ name, help, type: kind, values: [...samplesOf(figure)], aggregator: 'sum' }),
        reset: () => undefined,
      };
      registry.registerMetric(metric as unknown as Metric);
    },
  };
}
