/** Searches people and bots, and suspends them. */
import { type FormEvent, useState } from 'react';
import { Cell, useCell } from '../signal.js';
import { call, reasonOf, remove } from './api.js';
import { time } from './format.js';
import { Pager, usePages } from './lists.js';
import { type Column, Confirmed, Failure, Section, Table } from './parts.js';
import { placeOfBot, placeOfPerson } from './place.js';
import type { FoundAccount } from './types.js';

/** The last query, so that an operator who returns to the overview sees its results again. */
const searched = new Cell('');

export function AccountState({ state, date }: { state: string; date?: number | undefined }) {
  const words = state === 'blocked' ? 'token blocked' : state;
  return (
    <span className="state">
      <span className={`dot ${state === 'active' ? 'good' : 'bad'}`} aria-hidden="true" />
      {words}
      {date !== undefined && ` since ${time(date)}`}
    </span>
  );
}

export const accountColumns: ReadonlyArray<Column<FoundAccount>> = [
  {
    name: 'Name',
    show: ({ type, id, username, name }) => (
      <>
        <a href={type === 'bot' ? placeOfBot(id) : placeOfPerson(id)}>{username ? `@${username}` : name}</a>
        {username && <small>{name}</small>}
      </>
    ),
  },
  { name: 'Kind', show: ({ type }) => type },
  { name: 'Id', show: ({ id }) => <code>{id}</code>, wide: true },
  {
    name: 'State',
    show: ({ suspended }) => <AccountState state={suspended ? 'suspended' : 'active'} />,
  },
];

function Results({ query }: { query: string }) {
  const pages = usePages<FoundAccount>(`accounts?limit=20&query=${encodeURIComponent(query)}`);
  const empty =
    pages.toNext === undefined
      ? pages.isFirst
        ? 'No bot or person matches.'
        : 'No further bot or person matches.'
      : 'No match among these accounts. Older accounts were not searched yet.';
  return (
    <>
      <Failure text={pages.failure} />
      <Table
        key={`${query} ${pages.isFirst}`}
        label="Found bots and people"
        rows={pages.items ?? []}
        id={({ id }) => id}
        columns={accountColumns}
        empty={pages.items || pages.failure ? empty : 'Searching …'}
      />
      <Pager of="the search" pages={pages} next="Search older accounts" />
    </>
  );
}

export function Accounts() {
  const query = useCell(searched);
  const [typed, setTyped] = useState(query);
  const search = (event: FormEvent) => {
    event.preventDefault();
    searched.set(typed.trim());
  };
  return (
    <Section
      title="Bots and people"
      aside={
        <form className="row wrap filters" onSubmit={search}>
          <input
            type="search"
            aria-label="Search bots and people"
            placeholder="Part of a name, or an id"
            value={typed}
            onChange={(event) => {
              setTyped(event.target.value);
              if (event.target.value === '') searched.set('');
            }}
          />
          <button type="submit" className="button small">
            Search
          </button>
        </form>
      }
    >
      {query ? (
        <Results query={query} />
      ) : (
        <p className="hint-text">
          Find an account by its id, its username or a part of its name, and open it to see its state.
        </p>
      )}
    </Section>
  );
}

interface SuspensionProps {
  /** The API path of the account. */
  path: string;
  name: string;
  suspended: boolean;
  /** A text that says what a suspension does. */
  effect: string;
  changed: () => Promise<void>;
}

/** Suspends an account or ends its suspension, after a confirmation. */
export function Suspension({ path, name, suspended, effect, changed }: SuspensionProps) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState('');
  async function change() {
    setBusy(true);
    setFailure('');
    try {
      await (suspended ? remove(`${path}/suspension`) : call(`${path}/suspension`, {}));
      await changed();
    } catch (error) {
      setFailure(reasonOf(error));
    }
    setBusy(false);
  }
  return (
    <>
      <Failure text={failure} />
      <Confirmed
        label={suspended ? 'End suspension' : 'Suspend'}
        question={suspended ? `End the suspension of ${name}?` : `Suspend ${name}? ${effect}`}
        yes={suspended ? 'Yes, end it' : 'Yes, suspend'}
        danger={!suspended}
        busy={busy}
        act={() => void change()}
      />
    </>
  );
}
