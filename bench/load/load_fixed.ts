import { readFileSync } from 'node:fs';
import { type FixedRate, loadAtRate, poolWire } from '../../src/loadtest/fixed_rate.js';
import type { Series } from '../../src/loadtest/series.js';
import { plainWire } from './plain_wire.js';

export interface FixedTask extends Omit<FixedRate, 'signal'> {
  readonly series: Series;
  readonly ca?: string;
}

const { series, ca, ...load } = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8')) as FixedTask;
const { connections } = load;
const wire =
  ca === undefined ? await plainWire(series.origin, connections) : poolWire(series.origin, connections, ca);
process.stdout.write(`${JSON.stringify(await loadAtRate(series, load, wire))}\n`);
