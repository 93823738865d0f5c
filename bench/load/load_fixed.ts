/** The load process for a fixed rate: `load_fixed.js task.json`. */
import { readFileSync } from 'node:fs';
import { type FixedRate, loadAtRate } from '../../src/bench/fixed_rate.js';
import type { Series } from '../../src/bench/series.js';
import { plainWire } from './plain_wire.js';

/** What it is told by a file. */
export interface FixedTask extends Omit<FixedRate, 'signal'> {
  readonly series: Series;
}

const { series, ...load } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as FixedTask;
const wire = await plainWire(series.origin, load.connections);
process.stdout.write(`${JSON.stringify(await loadAtRate(series, load, wire))}\n`);
