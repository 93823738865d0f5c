/** The load process for a fixed rate: `load_fixed.js task.json`. */
import { readFileSync } from 'node:fs';
import { type FixedRate, loadAtRate, poolWire } from '../../src/loadtest/fixed_rate.js';
import type { Series } from '../../src/loadtest/series.js';
import { plainWire } from './plain_wire.js';

/** What it is told by a file. */
export interface FixedTask extends Omit<FixedRate, 'signal'> {
  readonly series: Series;
  /** Of a server that speaks TLS: whom it must be certified by. */
  readonly ca?: string;
}

const { series, ca, ...load } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as FixedTask;
const { connections } = load;
const wire =
  ca === undefined ? await plainWire(series.origin, connections) : poolWire(series.origin, connections, ca);
process.stdout.write(`${JSON.stringify(await loadAtRate(series, load, wire))}\n`);
