/** Shows the calls with their outcomes, and the outcomes of deliveries. */
import { count, ms, rate } from './format.js';
import { type Column, Section, Table } from './parts.js';
import type { CallRate, Rates } from './rates.js';

const shown = (value: number, bad = true) => (
  <span className={value > 0 && bad ? 'bad' : value === 0 ? 'muted' : ''}>{rate(value)}</span>
);

const columns: ReadonlyArray<Column<CallRate>> = [
  { name: 'Call', by: ({ call }) => call, show: ({ call }) => <code>{call}</code> },
  { name: 'Per second', by: ({ all }) => all, show: ({ all }) => rate(all), number: true },
  { name: '2xx', by: ({ ok }) => ok, show: ({ ok }) => shown(ok, false), number: true, wide: true },
  {
    name: '4xx',
    by: ({ refused }) => refused,
    show: ({ refused }) => shown(refused, false),
    number: true,
    wide: true,
  },
  { name: '429', by: ({ slowed }) => slowed, show: ({ slowed }) => shown(slowed), number: true },
  { name: '5xx', by: ({ failed }) => failed, show: ({ failed }) => shown(failed), number: true },
  { name: 'p50', by: ({ p50 }) => p50 ?? -1, show: ({ p50 }) => ms(p50), number: true, wide: true },
  { name: 'p99', by: ({ p99 }) => p99 ?? -1, show: ({ p99 }) => ms(p99), number: true },
  { name: 'Total', by: ({ total }) => total, show: ({ total }) => count(total), number: true, wide: true },
];

export function Calls({ rates }: { rates: Rates | null }) {
  return (
    <Section title="Requests" aside={<span className="muted">over the last 12 s</span>}>
      <Table
        label="Requests by call"
        rows={rates?.calls ?? []}
        id={({ call }) => call}
        columns={columns}
        first="Total"
        empty={rates ? 'No requests yet.' : 'Measuring …'}
      />
      <p className="hint-text">The latency at the top excludes polls and streams, which wait on purpose.</p>
    </Section>
  );
}

const outcomeColumns: ReadonlyArray<Column<Rates['outcomes'][number]>> = [
  { name: 'Outcome', by: ({ name }) => name, show: ({ name }) => name.replaceAll('_', ' ') },
  { name: 'Per second', by: (row) => row.rate, show: (row) => rate(row.rate), number: true },
  { name: 'Total', by: ({ total }) => total, show: ({ total }) => count(total), number: true },
];

export function Deliveries({ rates }: { rates: Rates | null }) {
  const died = rates?.dead.filter(({ total }) => total > 0) ?? [];
  return (
    <Section
      title="Deliveries"
      aside={
        <span className="muted">
          receivers p99 {ms(rates?.deliveryP99)} · queue wait p99 {ms(rates?.ageP99)}
        </span>
      }
    >
      <Table
        label="Deliveries by outcome"
        rows={rates?.outcomes ?? []}
        id={({ name }) => name}
        columns={outcomeColumns}
        first="Total"
        empty="No process delivers webhooks."
      />
      <p className="hint-text">
        Updates given up since these processes started:{' '}
        {died.length === 0
          ? 'none.'
          : `${died.map(({ name, total }) => `${count(total)} ${name.replaceAll('_', ' ')}`).join(', ')}.`}
      </p>
    </Section>
  );
}
