/** Prometheus metrics of one process, with labels whose values are bounded. */
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';

export interface Metrics {
  /** Text of the exposition format. */
  text(): Promise<string>;
  readonly contentType: string;
  call(method: string, status: number): void;
  /** Reads a figure whenever metrics are asked for. */
  gauge(name: string, help: string, read: () => number): void;
}

export interface BuildInfo {
  readonly version: string;
  readonly engine: string;
  readonly engineVersion: string;
  readonly native: boolean;
}

export function createMetrics(info: BuildInfo): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  new Gauge({
    name: 'petrel_build_info',
    help: 'Version of the program and the HTTP engine it runs on; always 1.',
    labelNames: ['version', 'engine', 'engine_version', 'engine_native'],
    registers: [registry],
  }).set(
    {
      version: info.version,
      engine: info.engine,
      engine_version: info.engineVersion,
      engine_native: String(info.native),
    },
    1,
  );
  // Counted here and handed over when somebody asks: looking up a set of labels costs more than a short call.
  const counts = new Map<string, Map<number, number>>();
  new Counter({
    name: 'petrel_bot_calls_total',
    help: 'Calls of bot methods by method and status.',
    labelNames: ['method', 'status'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [method, byStatus] of counts) {
        for (const [status, count] of byStatus) this.inc({ method, status: String(status) }, count);
      }
    },
  });
  return {
    text: () => registry.metrics(),
    contentType: registry.contentType,
    call(method, status) {
      let byStatus = counts.get(method);
      if (!byStatus) {
        byStatus = new Map();
        counts.set(method, byStatus);
      }
      byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
    },
    gauge(name, help, read) {
      new Gauge({
        name,
        help,
        registers: [registry],
        collect() {
          this.set(read());
        },
      });
    },
  };
}
