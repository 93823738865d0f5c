/** Shows the processes of the installation, and the stores that they use. */
import { bytes, count, ms, percent, rate, span } from './format.js';
import { type Column, Meter, Section, Table } from './parts.js';
import type { Rates } from './rates.js';
import type { Node, Overview, RedisServer } from './types.js';

const silent = (node: Node, { silent_after_ms }: Overview) => node.silent_ms > silent_after_ms;

function State({ node, overview }: { node: Node; overview: Overview }) {
  const quiet = silent(node, overview);
  const kind = quiet ? 'bad' : node.state === 'leaving' ? 'warn' : 'good';
  return (
    <span className="state">
      <span className={`dot ${kind}`} aria-hidden="true" />
      {quiet ? `silent for ${span(node.silent_ms)}` : node.state}
    </span>
  );
}

function Work({ node, rates }: { node: Node; rates: Rates | null }) {
  const { front, deliver, flush } = node;
  const mine = rates?.byNode.get(node.id);
  return (
    <ul className="work">
      {front && (
        <li>
          {rate(mine?.requests)} requests/s, {count(front.polls)} polls, {count(front.streams)} streams
        </li>
      )}
      {deliver && (
        <li>
          {rate(mine?.deliveries)} deliveries/s, {count(deliver.open)} open, {count(deliver.drains)} bots
        </li>
      )}
      {flush && (
        <li>
          {rate(mine?.rows)} rows/s, {ms(flush.lag_ms)} behind, {count(flush.partitions)} partitions
        </li>
      )}
    </ul>
  );
}

export function Nodes({ overview, rates }: { overview: Overview; rates: Rates | null }) {
  const { nodes, version } = overview;
  const columns: ReadonlyArray<Column<Node>> = [
    {
      name: 'Process',
      by: ({ role, since_ms }) => `${role} ${since_ms}`,
      show: (node) => (
        <>
          {node.role}
          {node.id === overview.node && <span className="tag">serves this page</span>}
          <small>
            {node.host} · {node.pid}
          </small>
        </>
      ),
    },
    {
      name: 'State',
      by: (node) => Number(silent(node, overview)),
      show: (node) => <State {...{ node, overview }} />,
    },
    { name: 'Activity', show: (node) => <Work node={node} rates={rates} /> },
    {
      name: 'Version',
      by: (node) => node.version,
      show: (node) => (
        <>
          <span className={node.version === version ? '' : 'warn-text'}>{node.version}</span>
          {node.engine && <small>{node.engine}</small>}
        </>
      ),
      wide: true,
    },
    {
      name: 'Uptime',
      by: (node) => -node.since_ms,
      show: (node) => span(overview.at_ms - node.since_ms),
      number: true,
    },
    {
      name: 'Loop delay',
      by: (node) => node.loop_p99_ms ?? 0,
      show: (node) => (
        <>
          {ms(node.loop_p99_ms)}
          <small>max {ms(node.loop_max_ms)}</small>
        </>
      ),
      number: true,
    },
    { name: 'CPU', by: (node) => node.cpu ?? 0, show: (node) => percent(node.cpu), number: true },
    {
      name: 'Memory',
      by: (node) => node.memory_bytes ?? 0,
      show: (node) => bytes(node.memory_bytes),
      number: true,
    },
  ];
  return (
    <Section title="Processes" aside={<span className="muted">{nodes.length} in total</span>}>
      <Table
        label="Processes"
        rows={nodes}
        id={({ id }) => id}
        columns={columns}
        first="Process"
        empty="No process has reported."
      />
    </Section>
  );
}

function Redis({ server }: { server: RedisServer }) {
  const { used_bytes: used, max_bytes: max } = server;
  return (
    <div className="stack store">
      <h3>{server.server}</h3>
      <Meter
        label="Memory"
        share={max > 0 ? used / max : 0}
        text={max > 0 ? `${bytes(used)} of ${bytes(max)}` : `${bytes(used)}, no limit`}
      />
      <dl className="facts">
        <dt>Version</dt>
        <dd>{server.version}</dd>
        <dt>Commands</dt>
        <dd>{count(server.commands_per_second)} /s</dd>
        <dt>Append-only file</dt>
        <dd className={server.appending ? '' : 'bad'}>{server.appending ? 'OK' : 'write failed'}</dd>
        <dt>Replicas</dt>
        <dd>{server.replicas}</dd>
        <dt>Clients</dt>
        <dd>{count(server.clients)}</dd>
      </dl>
    </div>
  );
}

export function Stores({ overview, rates }: { overview: Overview; rates: Rates | null }) {
  const { redis, postgres, journal } = overview;
  return (
    <>
      <Section title="Redis" aside={<span className="muted">scripts p99 {ms(rates?.scriptP99)}</span>}>
        {redis?.map((server) => (
          <Redis key={server.server} server={server} />
        ))}
        {redis === null && <p className="bad">No answer.</p>}
      </Section>
      <Section
        title="Postgres"
        aside={<span className="muted">{postgres ? `answers in ${ms(postgres.ms)}` : ''}</span>}
      >
        {postgres ? (
          <div className="stack store">
            <Meter
              label="Connections"
              share={postgres.connections / postgres.connections_max}
              text={`${postgres.connections} of ${postgres.connections_max}`}
            />
            <dl className="facts">
              <dt>Version</dt>
              <dd>{postgres.version}</dd>
              <dt>Webhooks</dt>
              <dd>{count(postgres.webhooks)}</dd>
              <dt>Quarantined entries</dt>
              <dd className={journal?.quarantined ? 'bad' : ''}>
                {journal ? count(journal.quarantined) : '–'}
              </dd>
              <dt>Last write</dt>
              <dd>
                {journal && journal.flushed_ms_ago !== null ? `${span(journal.flushed_ms_ago)} ago` : '–'}
              </dd>
            </dl>
          </div>
        ) : (
          <p className="bad">No answer.</p>
        )}
      </Section>
    </>
  );
}
