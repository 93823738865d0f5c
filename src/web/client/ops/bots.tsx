/** Lists the bots that need attention and redelivers their dead letters. */
import { type FormEvent, useCallback, useEffect, useState } from 'react';
import { call, reasonOf } from './api.js';
import { count, span, time } from './format.js';
import { useRepeated } from './live.js';
import { type Column, Confirmed, Dialog, Section, Table } from './parts.js';
import { placeOfBot } from './place.js';
import type { OperatorDeadLetter, RankedBot } from './types.js';

const orders = [
  ['pending', 'Most pending updates'],
  ['failures', 'Most failures'],
  ['dead_letters', 'Most dead letters'],
] as const;

interface Page {
  items: OperatorDeadLetter[];
  next_cursor?: string;
}

interface Replayed {
  queued: number;
  from_update_id?: number;
  to_update_id?: number;
}

function replayNote({ queued, from_update_id: from, to_update_id: to }: Replayed): string {
  if (queued === 0) return 'No update was queued, because none of them is a dead letter any more.';
  if (queued === 1) return `Update ${from} is queued again.`;
  return `${count(queued)} updates are queued again: ${from} to ${to}.`;
}

export function Letters({ bot, close }: { bot: Pick<RankedBot, 'id' | 'username'>; close: () => void }) {
  const [page, setPage] = useState<Page | null>(null);
  const [said, setSaid] = useState('');
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(false);
  const path = `bots/${bot.id}/dead_letters`;
  const load = useCallback(
    async (cursor?: string) => {
      try {
        const found = await call<Page>(`${path}?limit=50${cursor ? `&cursor=${cursor}` : ''}`);
        setPage((before) =>
          cursor && before ? { ...found, items: [...before.items, ...found.items] } : found,
        );
      } catch (error) {
        setFailure(reasonOf(error));
      }
    },
    [path],
  );
  useEffect(() => void load(), [load]);
  async function replay(range: { from_update_id?: number; to_update_id?: number }) {
    setBusy(true);
    setFailure('');
    try {
      setSaid(replayNote(await call<Replayed>(`${path}/replay`, range)));
    } catch (error) {
      setFailure(reasonOf(error));
    }
    await load();
    setBusy(false);
  }
  const columns: ReadonlyArray<Column<OperatorDeadLetter>> = [
    { name: 'Update', show: ({ update_id }) => <code>{update_id}</code> },
    { name: 'Type', show: ({ type }) => type.replaceAll('_', ' ') },
    { name: 'Given up', show: ({ date }) => time(date), wide: true },
    { name: 'Reason', show: ({ reason }) => reason.replaceAll('_', ' ') },
    {
      name: 'Replay',
      show: ({ update_id: id }) => (
        <button
          type="button"
          className="button small"
          disabled={busy}
          aria-label={`Replay update ${id}`}
          onClick={() => void replay({ from_update_id: id, to_update_id: id })}
        >
          Replay
        </button>
      ),
    },
  ];
  return (
    <Dialog title={`Dead letters of @${bot.username}`} close={close}>
      <div className="stack">
        <p className="muted">
          A replayed update keeps its id and is queued after the pending updates. The bot&apos;s audit log
          records the replay. Only the owner can see the content of messages.
        </p>
        <p role="status" className={said ? 'said' : ''}>
          {said}
        </p>
        {failure && (
          <p className="failure" role="alert">
            {failure}
          </p>
        )}
        {page && page.items.length > 0 && (
          <Confirmed
            label="Replay all"
            question="Replay all dead letters, up to 10,000?"
            yes="Yes, replay all"
            busy={busy}
            act={() => void replay({})}
          />
        )}
        {page && (
          <Table
            label="Dead letters"
            rows={page.items}
            id={({ update_id }) => update_id}
            columns={columns}
            empty="No dead letters."
          />
        )}
        {page?.next_cursor && (
          <button type="button" className="button" onClick={() => void load(page.next_cursor)}>
            More
          </button>
        )}
      </div>
    </Dialog>
  );
}

function columnsOf(open: (bot: RankedBot) => void): ReadonlyArray<Column<RankedBot>> {
  return [
    {
      name: 'Bot',
      show: (bot) => (
        <>
          <a href={placeOfBot(bot.id)}>@{bot.username}</a>
          <small>{bot.webhook_host ?? 'polls'}</small>
        </>
      ),
    },
    { name: 'Pending', by: ({ pending }) => pending, show: ({ pending }) => count(pending), number: true },
    {
      name: 'Failing for',
      by: ({ failing_since: since }) => (since === undefined ? 0 : Date.now() / 1_000 - since),
      show: ({ failing_since: since }) =>
        since === undefined ? (
          <span className="muted">–</span>
        ) : (
          <span className="bad">{span(Date.now() - since * 1_000)}</span>
        ),
      number: true,
    },
    {
      name: 'Last error',
      show: (bot) => <span className="error-text">{bot.last_error ?? '–'}</span>,
      wide: true,
    },
    {
      name: 'Failed',
      by: ({ failed }) => failed,
      show: ({ failed }) => count(failed),
      number: true,
      wide: true,
    },
    {
      name: 'Delivered',
      by: (bot) => bot.delivered,
      show: (bot) => count(bot.delivered),
      number: true,
      wide: true,
    },
    {
      name: 'Dead letters',
      by: (bot) => bot.dead_letters,
      show: (bot) =>
        bot.dead_letters === 0 ? (
          <span className="muted">0</span>
        ) : (
          <button
            type="button"
            className="button small"
            aria-label={`${bot.dead_letters} dead letters of @${bot.username}`}
            onClick={() => open(bot)}
          >
            {count(bot.dead_letters)}
          </button>
        ),
      number: true,
    },
  ];
}

export function Bots({ paused }: { paused: boolean }) {
  const [order, setOrder] = useState<string>('pending');
  const [named, setNamed] = useState('');
  const [typed, setTyped] = useState('');
  const [found, setFound] = useState<{ for: string; bots: RankedBot[] } | null>(null);
  const [failure, setFailure] = useState('');
  const [opened, setOpened] = useState<RankedBot | null>(null);
  const query = named ? `bot=${encodeURIComponent(named)}` : `order=${order}&limit=20`;
  const load = useCallback(async () => {
    try {
      const { items } = await call<{ items: RankedBot[] }>(`bots?${query}`);
      setFound({ for: query, bots: items });
      setFailure('');
    } catch (error) {
      setFailure(reasonOf(error).replace(/^Not Found: /, ''));
    }
  }, [query]);
  useEffect(() => void load(), [load]);
  useRepeated(load, 4_000, paused);
  const search = (event: FormEvent) => {
    event.preventDefault();
    setNamed(typed.trim());
  };
  return (
    <Section
      title="Bots that need attention"
      aside={
        <form className="row wrap filters" onSubmit={search}>
          <select
            aria-label="Order of bots"
            value={order}
            onChange={(event) => {
              setOrder(event.target.value);
              setNamed('');
              setTyped('');
            }}
          >
            {orders.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
          <input
            type="search"
            aria-label="Find a bot by username or id"
            placeholder="@bot or id"
            value={typed}
            onChange={(event) => {
              setTyped(event.target.value);
              if (event.target.value === '') setNamed('');
            }}
          />
        </form>
      }
    >
      {failure && (
        <p className="failure" role="alert">
          {failure}
        </p>
      )}
      <Table
        key={query}
        label="Bots that need attention"
        rows={found?.for === query ? found.bots : []}
        id={({ id }) => id}
        columns={columnsOf(setOpened)}
        empty={
          found?.for !== query ? 'Loading …' : named ? 'This bot does not exist.' : 'No bot needs attention.'
        }
      />
      {opened && (
        <Letters
          bot={opened}
          close={() => {
            setOpened(null);
            void load();
          }}
        />
      )}
    </Section>
  );
}
