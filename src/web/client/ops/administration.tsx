/** Shows the log of administrators' calls, and reserves usernames. */
import { type FormEvent, useState } from 'react';
import { call, reasonOf, remove } from './api.js';
import { count, time } from './format.js';
import { Pager, usePages } from './lists.js';
import { type Column, Failure, Section, Table } from './parts.js';
import type { AdminCall } from './types.js';

const callColumns: ReadonlyArray<Column<AdminCall>> = [
  {
    name: 'Call',
    show: ({ action, target }) => (
      <>
        <code>{action.replace('/api/admin/', '')}</code>
        {target && <small>{target}</small>}
      </>
    ),
  },
  { name: 'Time', show: ({ at }) => time(at) },
  { name: 'Token', show: ({ token }) => token },
  {
    name: 'Result',
    show: ({ status }) => (
      <span className={status === undefined || status >= 400 ? 'bad' : ''}>{status ?? 'unknown'}</span>
    ),
    number: true,
  },
  { name: 'Address', show: ({ address }) => address || 'command', wide: true },
  { name: 'Calls', show: ({ times }) => count(times), number: true, wide: true },
];

export function AuditLog() {
  const pages = usePages<AdminCall>('audit?limit=20');
  return (
    <Section
      title="Audit log"
      aside={
        <button type="button" className="button small" onClick={() => void pages.load()}>
          Refresh
        </button>
      }
    >
      <Failure text={pages.failure} />
      <Table
        key={String(pages.isFirst)}
        label="Audit log"
        rows={pages.items ?? []}
        id={({ id }) => id}
        columns={callColumns}
        empty={pages.items ? 'No calls.' : 'Loading …'}
      />
      <Pager of="the audit log" pages={pages} next="Older calls" />
      <p className="hint-text">Repeated reads are one entry an hour, with the time of the first call.</p>
    </Section>
  );
}

function ReserveForm({ busy, reserve }: { busy: boolean; reserve: (name: string) => Promise<boolean> }) {
  const [typed, setTyped] = useState('');
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (await reserve(typed.trim().replace(/^@/, ''))) setTyped('');
  };
  return (
    <form className="row wrap filters" onSubmit={(event) => void submit(event)}>
      <input
        type="text"
        aria-label="Username to reserve"
        placeholder="username"
        autoComplete="off"
        spellCheck={false}
        value={typed}
        onChange={(event) => setTyped(event.target.value)}
      />
      <button type="submit" className="button small" disabled={busy || typed.trim() === ''}>
        Reserve
      </button>
    </form>
  );
}

export function ReservedNames() {
  const pages = usePages<string>('reserved_usernames?limit=20');
  const [busy, setBusy] = useState(false);
  const [said, setSaid] = useState('');
  const [failure, setFailure] = useState('');
  async function change(work: () => Promise<unknown>, done: string): Promise<boolean> {
    setBusy(true);
    setFailure('');
    setSaid('');
    try {
      await work();
      setSaid(done);
      await pages.load();
      return true;
    } catch (error) {
      setFailure(reasonOf(error));
      return false;
    } finally {
      setBusy(false);
    }
  }
  const reserve = (username: string) =>
    change(() => call('reserved_usernames', { username }), `Nobody can take @${username} now.`);
  const release = (name: string) =>
    change(() => remove(`reserved_usernames/${encodeURIComponent(name)}`), `@${name} is free again.`);
  const columns: ReadonlyArray<Column<string>> = [
    { name: 'Username', show: (name) => `@${name}` },
    {
      name: 'Reservation',
      show: (name) => (
        <button
          type="button"
          className="button small"
          disabled={busy}
          aria-label={`Release @${name}`}
          onClick={() => void release(name)}
        >
          Release
        </button>
      ),
      number: true,
    },
  ];
  return (
    <Section title="Reserved usernames" aside={<ReserveForm busy={busy} reserve={reserve} />}>
      <p role="status" className={said ? 'said' : ''}>
        {said}
      </p>
      <Failure text={failure || pages.failure} />
      <Table
        key={String(pages.isFirst)}
        label="Reserved usernames"
        rows={pages.items ?? []}
        id={(name) => name}
        columns={columns}
        empty={pages.items ? 'No username is reserved.' : 'Loading …'}
      />
      <Pager of="the reserved usernames" pages={pages} next="Next page" />
    </Section>
  );
}
