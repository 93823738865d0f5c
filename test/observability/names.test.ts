/**
 * Checks that alert rules, dashboard and runbooks refer only to existing metrics and alerts. Also checks that every
 * metric is in a rule or on the dashboard, and that every alert has a runbook.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { createMetrics } from '../../src/obs/metrics.js';
import { alertsIn, readShipped, shippedQueries } from './shipped.js';

const src = fileURLToPath(new URL('../../src', import.meta.url));
const sources = readdirSync(src, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.startsWith('dev/'))
  .map((path) => readFileSync(join(src, path), 'utf8'));
/** The names of Petrel's metrics are literals or property names in the source. */
const own = new Set(sources.flatMap((text) => text.match(/\bpetrel_[a-z_]+(?=[':])/g) ?? []));

const namesIn = (query: string) =>
  [...query.matchAll(/\b((?:petrel|nodejs|process)_[a-z0-9_]+)/g)].map(([, name = '']) =>
    own.has(name) ? name : name.replace(/_(bucket|sum|count)$/, ''),
  );
const asked = new Set([...shippedQueries(), ...alertsIn().map(({ expr }) => expr)].flatMap(namesIn));

test('every metric in an alert rule or a dashboard panel is exported', async () => {
  const exposition = await createMetrics({ version: '', engine: '', engineVersion: '' }).text();
  const byDefault = new Set([...exposition.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name));
  expect(asked.size).toBeGreaterThan(40);
  expect([...asked].filter((name) => !own.has(name) && !byDefault.has(name))).toEqual([]);
});

test('every exported metric is on the dashboard or in an alert rule', () => {
  expect([...own].filter((name) => !asked.has(name))).toEqual([]);
});

test('every alert has a section in the runbooks', () => {
  const parts = [...readShipped('runbooks.md').matchAll(/^## (\w+)$/gm)].map(([, name]) => name);
  const alerts = alertsIn();
  expect(alerts.length).toBeGreaterThan(15);
  expect(parts.sort()).toEqual(alerts.map(({ name }) => name).sort());
  for (const { name, runbook } of alerts) expect(runbook).toBe(`runbooks.md#${name.toLowerCase()}`);
});

test('durations are counted in histogram buckets, and exported in seconds', async () => {
  const { Distribution } = await import('../../src/obs/distribution.js');
  const times = new Distribution();
  for (const ms of [0.5, 0.6, 70_000]) times.observe(ms);
  const metrics = createMetrics({ version: '', engine: '', engineVersion: '' });
  metrics.register({
    kind: 'histogram',
    name: 'took',
    help: 'x',
    labels: ['of'],
    read: () => [[['it'], times]],
  });
  const lines = (await metrics.text()).split('\n').filter((line) => line.startsWith('took'));
  expect(lines).toContain('took_bucket{of="it",le="0.0005"} 1');
  expect(lines).toContain('took_bucket{of="it",le="0.001"} 2');
  expect(lines).toContain('took_bucket{of="it",le="60"} 2');
  expect(lines).toContain('took_bucket{of="it",le="+Inf"} 3');
  expect(lines).toContain('took_count{of="it"} 3');
  expect(Number(/took_sum\S* (\S+)/.exec(lines.join('\n'))?.[1])).toBeCloseTo(70.0011);
});
