/** Shows one bot to operators: owner, state, queues, delivery attempts and limits. */
import { type ReactNode, useCallback, useEffect, useState } from 'react';
import { AccountState, Suspension } from './accounts.js';
import { call, reasonOf } from './api.js';
import { Letters } from './bots.js';
import { bytes, count, ms, rate, span, time } from './format.js';
import { Pager, usePages } from './lists.js';
import { useRepeated } from './live.js';
import { type Column, Failure, Section, Table } from './parts.js';
import { placeOfPerson } from './place.js';
import type { OperatorAttempt, OperatorBot, Outcome, Queue } from './types.js';

const refresh_ms = 4_000;

function Figure({
  name,
  value,
  bad,
  children,
}: Record<'name' | 'value', string> & { bad?: boolean; children?: ReactNode }) {
  return (
    <div className={bad ? 'tile plain bad-tile' : 'tile plain'}>
      <dt>{name}</dt>
      <dd>
        <strong>{value}</strong>
        <small>{children}</small>
      </dd>
    </div>
  );
}

const errorColumn = (of: (row: Queue) => ReactNode): Column<Queue> => ({
  name: 'Last error',
  show: (row) => <span className="error-text">{of(row)}</span>,
  wide: true,
});

const queueColumns: ReadonlyArray<Column<Queue>> = [
  {
    name: 'Queue',
    show: ({ route, webhook_host: host, chat_count: chats, percent, command_count: commands }) => (
      <>
        {route === undefined ? (host ? 'webhook' : 'getUpdates') : `route ${route}`}
        {host && <small>{host}</small>}
        {(chats !== undefined || percent !== undefined) && (
          <small>
            {chats === undefined ? '' : `${count(chats)} chats `}
            {percent === undefined ? '' : `${percent} % of chats`}
          </small>
        )}
        {commands !== undefined && <small>{count(commands)} commands</small>}
      </>
    ),
  },
  { name: 'Pending', show: (queue) => count(queue.pending_update_count), number: true },
  { name: 'Delivered', show: (queue) => `${rate(queue.delivered_per_second)} /s`, number: true, wide: true },
  {
    name: 'Failed',
    show: ({ failed_per_second: failed }) => (
      <span className={failed > 0 ? 'bad' : 'muted'}>{rate(failed)} /s</span>
    ),
    number: true,
  },
  {
    name: 'Latency',
    show: (queue) => (
      <>
        {ms(queue.latency_p50_ms)}
        <small>p99 {ms(queue.latency_p99_ms)}</small>
      </>
    ),
    number: true,
    wide: true,
  },
  {
    name: 'Failing for',
    show: ({ failing_date: since, next_try_date: next }) => (
      <>
        {since === undefined ? (
          <span className="muted">–</span>
        ) : (
          <span className="bad">{span(Date.now() - since * 1_000)}</span>
        )}
        {next !== undefined && <small>retry in {span(next * 1_000 - Date.now())}</small>}
      </>
    ),
    number: true,
  },
  errorColumn(({ last_error_message: message, last_error_date: date }) =>
    message === undefined ? '–' : `${message}${date === undefined ? '' : `, ${time(date)}`}`,
  ),
  {
    name: 'Settings',
    show: ({
      max_connections: most,
      retry_policy: retry,
      allowed_updates: allowed,
      has_custom_certificate: own,
    }) => (
      <ul className="settings">
        {most !== undefined && <li>{most} connections</li>}
        {retry && (
          <li>
            retries after {retry.first_delay} s × {retry.factor}, up to {span(retry.max_age * 1_000)}
          </li>
        )}
        {own && <li>own certificate</li>}
        {allowed && <li>{allowed.length} update types</li>}
      </ul>
    ),
    wide: true,
  },
];

const outcomeName = ({ delivered, error, status }: Outcome): string =>
  delivered ? 'delivered' : (error ?? (status === null ? 'no answer' : String(status)));

const outcomeColumns: ReadonlyArray<Column<Outcome>> = [
  {
    name: 'Outcome',
    show: (outcome) => (
      <>
        <span className={outcome.delivered ? '' : 'bad'}>{outcomeName(outcome)}</span>
        {outcome.route && <small>route {outcome.route}</small>}
      </>
    ),
  },
  { name: 'Attempts', show: (outcome) => count(outcome.count), number: true },
  { name: 'Per second', show: (outcome) => rate(outcome.per_second), number: true, wide: true },
  { name: 'p50', show: (outcome) => ms(outcome.latency_p50_ms), number: true, wide: true },
  { name: 'p99', show: (outcome) => ms(outcome.latency_p99_ms), number: true },
  { name: 'Last', show: (outcome) => time(outcome.last_date), number: true, wide: true },
];

const attemptColumns: ReadonlyArray<Column<OperatorAttempt & { id: string }>> = [
  {
    name: 'Update',
    show: ({ update_id, route, date }) => (
      <>
        <code>{update_id}</code>
        {route && <small>route {route}</small>}
        <small>{time(date)}</small>
      </>
    ),
  },
  {
    name: 'Outcome',
    show: ({ delivered, status, error, dead }) => (
      <>
        <span className={delivered ? '' : 'bad'}>
          {delivered ? `delivered ${status ?? ''}` : (error ?? status)}
        </span>
        {dead !== undefined && <small>dead letter: {dead.replaceAll('_', ' ')}</small>}
      </>
    ),
  },
  { name: 'Attempt', show: ({ tries }) => count(tries), number: true, wide: true },
  { name: 'Latency', show: ({ latency_ms }) => ms(latency_ms), number: true },
  {
    name: 'Next attempt',
    show: ({ next_try_date: next }) => (next === null ? '–' : time(next)),
    number: true,
    wide: true,
  },
];

const outcomes = [
  ['', 'All attempts'],
  ['&status=failed', 'Failed attempts'],
  ['&status=delivered', 'Delivered attempts'],
] as const;

function Attempts({ id, paused }: { id: number; paused: boolean }) {
  const [status, setStatus] = useState('');
  const pages = usePages<OperatorAttempt>(`bots/${id}/attempts?limit=20${status}`);
  useRepeated(pages.load, refresh_ms, paused || !pages.isFirst);
  const rows = (pages.items ?? []).map((item) => ({
    ...item,
    id: `${item.update_id} ${item.route} ${item.tries} ${item.date}`,
  }));
  return (
    <Section
      title="Latest attempts"
      aside={
        <form className="row filters">
          <select
            aria-label="Outcome of attempts"
            value={status}
            onChange={(event) => setStatus(event.target.value)}
          >
            {outcomes.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </form>
      }
    >
      <Failure text={pages.failure} />
      <Table
        key={`${status} ${pages.isFirst}`}
        label="Latest attempts"
        rows={rows}
        id={(row) => row.id}
        columns={attemptColumns}
        empty={pages.items ? 'No attempts.' : 'Loading …'}
      />
      <Pager of="the attempts" pages={pages} next="Older attempts" />
    </Section>
  );
}

const rateNames = {
  bot: 'Calls of this bot',
  poll: 'Polls of this bot',
  owner: 'Calls of all bots of the owner',
  chat: 'Calls in one chat',
} as const;

function Limits({ bot }: { bot: OperatorBot }) {
  return (
    <Section title="Limits in force">
      <dl className="facts">
        {(['bot', 'poll', 'owner', 'chat'] as const).map((kind) => {
          const found = bot.rates.find((each) => each.kind === kind);
          return (
            <div key={kind}>
              <dt>{rateNames[kind]}</dt>
              <dd>{found ? `${count(found.calls)} in ${count(found.seconds)} s` : 'no limit'}</dd>
            </div>
          );
        })}
        <div>
          <dt>Pending updates of a queue</dt>
          <dd>
            {count(bot.pending_updates_max)}, {bytes(bot.pending_bytes_max)}
          </dd>
        </div>
      </dl>
    </Section>
  );
}

function Head({ bot, changed }: { bot: OperatorBot; changed: () => Promise<void> }) {
  const { id, username, name, owner, state, state_date, created_date } = bot;
  return (
    <Section title={`@${username}`}>
      <dl className="facts">
        <dt>Name</dt>
        <dd>{name}</dd>
        <dt>Id</dt>
        <dd>
          <code>{id}</code>
        </dd>
        <dt>State</dt>
        <dd>
          <AccountState state={state} date={state_date} />
        </dd>
        <dt>Owner</dt>
        <dd>
          {owner ? (
            <>
              <a href={placeOfPerson(owner.id)}>{owner.username ? `@${owner.username}` : owner.name}</a>
              {owner.suspended && ' (suspended)'}
            </>
          ) : (
            'none: a part of Petrel'
          )}
        </dd>
        <dt>Created</dt>
        <dd>{time(created_date)}</dd>
      </dl>
      {owner && (
        <Suspension
          path={`bots/${id}`}
          name={`@${username}`}
          suspended={state === 'suspended'}
          effect="Its token and webhook stop working at once. Updates are kept."
          changed={changed}
        />
      )}
    </Section>
  );
}

function Figures({ bot, open }: { bot: OperatorBot; open: () => void }) {
  const pending = bot.queues.reduce((sum, queue) => sum + queue.pending_update_count, 0);
  return (
    <dl className="tiles">
      <Figure name="Pending updates" value={count(pending)}>
        in {count(bot.queues.length)} {bot.queues.length === 1 ? 'queue' : 'queues'}
      </Figure>
      <Figure name="Delivered" value={count(bot.delivered_count)}>
        updates so far
      </Figure>
      <Figure name="Failed attempts" value={count(bot.failed_count)}>
        so far
      </Figure>
      <Figure name="Dead letters" value={count(bot.dead_letter_count)} bad={bot.dead_letter_count > 0}>
        {count(bot.dead_count)} so far{' '}
        {bot.dead_letter_count > 0 && (
          <button type="button" className="button small" onClick={open}>
            Show dead letters
          </button>
        )}
      </Figure>
    </dl>
  );
}

export function BotPage({ id, paused }: { id: number; paused: boolean }) {
  const [bot, setBot] = useState<OperatorBot | null>(null);
  const [failure, setFailure] = useState('');
  const [opened, setOpened] = useState(false);
  const load = useCallback(async () => {
    try {
      setBot(await call<OperatorBot>(`bots/${id}`));
      setFailure('');
    } catch (error) {
      setFailure(reasonOf(error));
    }
  }, [id]);
  useEffect(() => void load(), [load]);
  useRepeated(load, refresh_ms, paused);
  if (bot === null)
    return failure ? (
      <Failure text={failure} />
    ) : (
      <p className="empty" role="status">
        Loading …
      </p>
    );
  return (
    <>
      <Failure text={failure} />
      <Head bot={bot} changed={load} />
      <Figures bot={bot} open={() => setOpened(true)} />
      <Section title="Webhook and routes">
        <Table
          label="Webhook and routes"
          rows={bot.queues}
          id={({ route }) => route ?? ''}
          columns={queueColumns}
          empty="No queue."
        />
      </Section>
      <div className="halves">
        <Section title="Attempts of the last hour">
          <Table
            label="Attempts by outcome"
            rows={bot.outcomes}
            // Uses the index as the key, because two outcomes may have equal texts: outcomes of deleted routes have no
            // route name.
            id={(outcome) => bot.outcomes.indexOf(outcome)}
            columns={outcomeColumns}
            empty="No attempts in the last hour."
          />
          <p className="hint-text">
            Counts the last 100 successes and 1,000 failures at most. Rates and latencies on this page come
            from the same attempts.
          </p>
        </Section>
        <Limits bot={bot} />
      </div>
      <Attempts id={id} paused={paused} />
      {opened && (
        <Letters
          bot={bot}
          close={() => {
            setOpened(false);
            void load();
          }}
        />
      )}
    </>
  );
}
