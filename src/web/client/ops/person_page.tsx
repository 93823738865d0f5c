/** Shows a person and their bots to operators. */
import { useCallback, useEffect, useState } from 'react';
import { AccountState, accountColumns, Suspension } from './accounts.js';
import { call, reasonOf } from './api.js';
import { count, time } from './format.js';
import { Pager, usePages } from './lists.js';
import { Failure, Section, Table } from './parts.js';
import type { FoundAccount, OperatorPerson } from './types.js';

function BotsOf({ id }: { id: number }) {
  const pages = usePages<FoundAccount>(`users/${id}/bots?limit=20`);
  return (
    <Section title="Bots of this person">
      <Failure text={pages.failure} />
      <Table
        key={String(pages.isFirst)}
        label="Bots of this person"
        rows={pages.items ?? []}
        id={(bot) => bot.id}
        columns={accountColumns}
        empty={pages.items ? 'No bots.' : 'Loading …'}
      />
      <Pager of="the bots" pages={pages} next="Next page" />
    </Section>
  );
}

export function PersonPage({ id }: { id: number }) {
  const [person, setPerson] = useState<OperatorPerson | null>(null);
  const [failure, setFailure] = useState('');
  const load = useCallback(async () => {
    try {
      setPerson(await call<OperatorPerson>(`users/${id}`));
      setFailure('');
    } catch (error) {
      setFailure(reasonOf(error));
    }
  }, [id]);
  useEffect(() => void load(), [load]);
  if (person === null)
    return failure ? (
      <Failure text={failure} />
    ) : (
      <p className="empty" role="status">
        Loading …
      </p>
    );
  const { username, name, state, state_date, created_date, bot_count } = person;
  return (
    <>
      <Section title={username ? `@${username}` : name}>
        <Failure text={failure} />
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
          <dt>Created</dt>
          <dd>{time(created_date)}</dd>
          <dt>Bots</dt>
          <dd>{count(bot_count)}</dd>
        </dl>
        <Suspension
          path={`users/${id}`}
          name={username ? `@${username}` : name}
          suspended={state === 'suspended'}
          effect="All tokens of this person stop working at once. The person's bots keep working."
          changed={load}
        />
      </Section>
      <BotsOf id={id} />
    </>
  );
}
