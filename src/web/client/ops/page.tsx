/** Shows the live state of the installation on the operators' page. */
import { useEffect, useRef, useState } from 'react';
import { useCell } from '../signal.js';
import { setTheme, type Theme, theme, themes } from '../theme.js';
import { Accounts } from './accounts.js';
import { AuditLog, ReservedNames } from './administration.js';
import { CallFailure, call, keepToken, reasonOf, refusal, token } from './api.js';
import { BotPage } from './bot_page.js';
import { Bots } from './bots.js';
import { Charts } from './charts.js';
import { clock, count, ms, rate, span } from './format.js';
import { type HistoryRange, openOf, type Point, useHistory, useView, type View } from './live.js';
import { Nodes, Stores } from './nodes.js';
import { Tile } from './parts.js';
import { PersonPage } from './person_page.js';
import { overviewPlace, type Place, usePlace } from './place.js';
import { Calls, Deliveries } from './traffic.js';
import type { Overview } from './types.js';

function SignIn() {
  const [secret, setSecret] = useState('');
  const [failure, setFailure] = useState(refusal.value);
  const [busy, setBusy] = useState(false);
  async function enter() {
    setBusy(true);
    setFailure('');
    try {
      await call<Overview>('overview', undefined, secret.trim());
      refusal.set('');
      keepToken(secret.trim());
    } catch (error) {
      const wrong = error instanceof CallFailure && error.status === 401;
      setFailure(wrong ? 'This token is not valid.' : reasonOf(error));
      setBusy(false);
    }
  }
  return (
    <main className="gate">
      <form
        className="card stack"
        onSubmit={(event) => {
          event.preventDefault();
          void enter();
        }}
      >
        <header className="row">
          <img src="/ops/icon.svg" alt="" width="44" height="44" />
          <h1>Petrel operations</h1>
        </header>
        <div className="field">
          <label htmlFor="token">Operator's token</label>
          <input
            id="token"
            type="password"
            autoComplete="off"
            spellCheck={false}
            value={secret}
            aria-describedby="token-hint"
            onChange={(event) => setSecret(event.target.value)}
          />
          <p className="hint" id="token-hint">
            The setting ADMIN_TOKEN of the fronts, or a token from <code>petrel admin tokens add</code>.
            Closing this tab deletes the token.
          </p>
        </div>
        {failure && (
          <p className="failure" role="alert">
            {failure}
          </p>
        )}
        <button type="submit" className="button primary large" disabled={busy || secret.trim() === ''}>
          Sign in
        </button>
      </form>
    </main>
  );
}

type Finding = Overview['findings'][number];

function FindingList({ findings }: { findings: readonly Finding[] }) {
  return (
    <ul>
      {findings.map(({ bad, what, todo }) => (
        <li key={what}>
          <strong className={bad ? 'bad' : ''}>{bad ? 'Problem' : 'Advice'}</strong>
          <span>
            {what}
            {todo && <small>{todo}</small>}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Findings({ findings }: Pick<Overview, 'findings'>) {
  const wrong = findings.filter(({ bad }) => bad);
  const advised = findings.filter(({ bad }) => !bad);
  const words =
    wrong.length === 0 ? 'No problems' : `${wrong.length} ${wrong.length === 1 ? 'problem' : 'problems'}`;
  return (
    <section className={wrong.length > 0 ? 'card findings is-bad' : 'card findings'} aria-label="Findings">
      <p role="status" className="verdict">
        <span className={`dot ${wrong.length > 0 ? 'bad' : 'good'}`} aria-hidden="true" />
        {words}
      </p>
      {wrong.length > 0 && <FindingList findings={wrong} />}
      {advised.length > 0 && (
        <details>
          <summary>
            {advised.length} {advised.length === 1 ? 'piece' : 'pieces'} of advice
          </summary>
          <FindingList findings={advised} />
        </details>
      )}
    </section>
  );
}

function Tiles({ overview, rates, history }: { overview: Overview } & Omit<View, 'overview' | 'failure'>) {
  const { journal, queues, postgres, nodes } = overview;
  const past = (name: keyof Point) => history.map((point) => point[name]);
  const sum = (of: 'polls' | 'streams') => nodes.reduce((total, { front }) => total + (front?.[of] ?? 0), 0);
  const lag = Math.max(0, ...nodes.map(({ flush }) => flush?.lag_ms ?? 0));
  return (
    <dl className="tiles">
      <Tile name="Requests" value={rate(rates?.requests)} unit="/s" values={past('requests')}>
        {rates ? `${rate(rates.refused)} refused, ${rate(rates.slowed)} throttled` : 'measuring …'}
      </Tile>
      <Tile name="Latency p99" value={ms(rates?.p99)} values={past('p99')}>
        p50 {ms(rates?.p50)}
      </Tile>
      <Tile
        name="Failures"
        value={rate(rates?.failed)}
        unit="/s"
        bad={(rates?.failed ?? 0) > 0}
        values={past('failed')}
      >
        responses with 5xx
      </Tile>
      <Tile name="Open requests" value={count(openOf(overview))} values={past('open')}>
        {count(sum('polls'))} polls, {count(sum('streams'))} streams
      </Tile>
      <Tile name="Deliveries" value={rate(rates?.delivered)} unit="/s" values={past('delivered')}>
        {rate(rates?.undelivered)} failed
      </Tile>
      <Tile
        name="Webhooks overdue"
        value={queues ? count(queues.webhooks_overdue) : '–'}
        bad={(queues?.overdue_ms ?? 0) > 10_000}
        values={past('overdue')}
      >
        {queues ? `${count(queues.webhooks_due)} due, outbox ${count(queues.outbox)}` : 'unknown'}
      </Tile>
      <Tile
        name="Journal"
        value={journal ? count(journal.waiting) : '–'}
        unit="entries"
        bad={journal !== null && journal.fullest > 0.5 * journal.high_water}
        values={past('journal')}
      >
        {journal
          ? `${ms(lag)} behind, largest ${count(journal.fullest)} of ${count(journal.high_water)}`
          : 'unknown'}
      </Tile>
      <Tile
        name="Dead letters"
        value={
          postgres ? `${count(postgres.dead_letters)}${postgres.dead_letters >= 100_000 ? '+' : ''}` : '–'
        }
        values={past('dead')}
      >
        {postgres ? `${count(postgres.failing)} of ${count(postgres.webhooks)} webhooks failing` : 'unknown'}
      </Tile>
    </dl>
  );
}

/**
 * Shows the age of the page's figures. Redraws itself regularly, because the age changes even if no new figures arrive.
 */
function Fresh({ at, paused, failure }: { at: number; paused: boolean; failure: string }) {
  const [seen, setSeen] = useState({ at, here: Date.now() });
  const [now, setNow] = useState(Date.now());
  if (seen.at !== at) setSeen({ at, here: Date.now() });
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  const old = now - seen.here;
  return (
    <span className={failure ? 'fresh bad' : 'fresh muted'}>
      {failure && `${failure}. `}
      {clock(seen.here)}
      {(paused || failure || old > 6_000) && `, ${span(old)} ago`}
    </span>
  );
}

function Top({ view, paused, pause }: { view: View; paused: boolean; pause: (paused: boolean) => void }) {
  const chosen = useCell(theme);
  const { overview, failure } = view;
  return (
    <header className="top">
      <img src="/ops/icon.svg" alt="" width="30" height="30" />
      <h1>Petrel operations</h1>
      <span className="version muted grow">{overview ? `version ${overview.version}` : ''}</span>
      {overview && <Fresh at={overview.at_ms} paused={paused} failure={failure} />}
      <button type="button" className="button small" aria-pressed={paused} onClick={() => pause(!paused)}>
        {paused ? 'Resume' : 'Pause'}
      </button>
      <select
        aria-label="Appearance"
        value={chosen}
        onChange={(event) => setTheme(event.target.value as Theme)}
      >
        {themes.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
      <button type="button" className="button small" onClick={() => keepToken('')}>
        Sign out
      </button>
    </header>
  );
}

function Everything({ view, paused }: { view: View; paused: boolean }) {
  const [range, setRange] = useState<HistoryRange>('1h');
  const loaded = useHistory(range, paused);
  const { overview, rates, history, failure } = view;
  if (overview === null)
    return (
      <p className="empty" role="status">
        {failure || 'Loading …'}
      </p>
    );
  return (
    <>
      <Findings findings={overview.findings} />
      <Tiles {...{ overview, rates, history }} />
      <Charts loaded={loaded} range={range} choose={setRange} />
      <Nodes overview={overview} rates={rates} />
      <Bots paused={paused} />
      <Accounts />
      <div className="halves">
        <Calls rates={rates} />
        <div>
          <Deliveries rates={rates} />
          <Stores overview={overview} rates={rates} />
        </div>
      </div>
      <div className="halves">
        <AuditLog />
        <ReservedNames />
      </div>
    </>
  );
}

/** Shows one account. Moves the keyboard focus to the link to the overview when the account is opened. */
function Account({ place, paused }: { place: Place; paused: boolean }) {
  const back = useRef<HTMLAnchorElement>(null);
  useEffect(() => back.current?.focus(), []);
  return (
    <>
      <nav aria-label="Way back">
        <a ref={back} href={overviewPlace}>
          ← Overview
        </a>
      </nav>
      {place.kind === 'bots' ? <BotPage id={place.id} paused={paused} /> : <PersonPage id={place.id} />}
    </>
  );
}

function Board() {
  const [paused, setPaused] = useState(false);
  const view = useView(paused);
  const place = usePlace();
  return (
    <div className="board">
      <Top view={view} paused={paused} pause={setPaused} />
      <main>
        {place.kind === 'overview' ? (
          <Everything view={view} paused={paused} />
        ) : (
          <Account key={`${place.kind} ${place.id}`} place={place} paused={paused} />
        )}
      </main>
    </div>
  );
}

export function Page() {
  return useCell(token) === '' ? <SignIn /> : <Board />;
}
