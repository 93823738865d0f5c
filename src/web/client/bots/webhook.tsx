/** Shows a bot's webhook: its state, its routes, test requests, delivery attempts, and dead letters. */
import { lazy, Suspense, useCallback, useEffect, useState } from 'react';
import { call, get } from '../api.js';
import { attempt, reasonOf } from '../failures.js';
import { say } from '../notes.js';
import { usePages } from '../pages.js';
import type { BotProps } from '../types.js';
import { Icon } from '../view/icons.js';
import { Confirm, Spinner, Trouble } from '../view/ui.js';
import { fullDate, t } from '../words.js';

const Replays = lazy(() => import('./replays.js'));

interface State {
  url: string;
  pending_update_count: number;
  last_error_date: number | null;
  last_error_message: string | null;
  max_connections: number;
  ip_address?: string;
}

interface Route {
  name: string;
  url: string;
  pending_update_count: number;
  last_error_date: number | null;
  last_error_message: string | null;
  next_try_date: number | null;
  max_connections: number;
  allowed_updates?: string[];
  chat_ids?: number[];
  percent?: number;
  commands?: string[];
}

interface Attempt {
  update_id: number;
  route?: string;
  date: number;
  delivered: boolean;
  status: number | null;
  error: string | null;
  latency_ms: number;
  answer: string;
  tries: number;
  next_try_date: number | null;
  dead?: string;
}

interface Ping {
  delivered: boolean;
  status: number | null;
  error: string | null;
  latency_ms: number;
  times: { resolve_ms?: number; connect_ms?: number; tls_ms?: number; answer_ms?: number };
  request: { headers: { name: string; value: string | null }[]; body: string };
  answer: { headers: { name: string; value: string }[]; body: string; truncated: boolean } | null;
}

interface DeadLetter {
  update_id: number;
  route?: string;
  reason: string;
  date: number;
  update: unknown;
}

const reasons = {
  expired: 'dead_expired',
  too_large: 'dead_too_large',
  queue_full: 'dead_queue_full',
} as const;

/** Returns a text that says why an update will not be retried. */
function whyDead(reason: string): string {
  const key = Object.entries(reasons).find(([name]) => name === reason)?.[1];
  return key ? t(key) : reason;
}

function StateCard({ base, state }: { base: string; state: State }) {
  return (
    <section className="card stack">
      <h3>{t('webhook')}</h3>
      <dl className="facts">
        <dt>{t('address')}</dt>
        <dd dir="ltr">{state.url || t('polls')}</dd>
        {state.ip_address && (
          <>
            <dt>IP</dt>
            <dd dir="ltr">{state.ip_address}</dd>
          </>
        )}
        <dt>{t('waiting_updates')}</dt>
        <dd>{state.pending_update_count}</dd>
        <dt>{t('connections')}</dt>
        <dd>{state.max_connections}</dd>
        <LastError of={state} />
      </dl>
      {state.url && <Test base={base} />}
    </section>
  );
}

function LastError({ of: { last_error_message: message, last_error_date: date } }: { of: State | Route }) {
  return (
    <>
      <dt>{t('last_error')}</dt>
      <dd className={message ? 'bad' : ''}>
        {message && date ? `${message} · ${fullDate(date)}` : t('none')}
      </dd>
    </>
  );
}

function RouteFacts({ route }: { route: Route }) {
  const { url, pending_update_count, max_connections, next_try_date } = route;
  const { allowed_updates, chat_ids, percent, commands } = route;
  return (
    <dl className="facts">
      <dt>{t('address')}</dt>
      <dd dir="ltr">{url}</dd>
      {percent !== undefined && (
        <>
          <dt>{t('route_percent')}</dt>
          <dd>{percent} %</dd>
        </>
      )}
      {chat_ids && (
        <>
          <dt>{t('route_chats')}</dt>
          <dd>{chat_ids.length}</dd>
        </>
      )}
      {commands && (
        <>
          <dt>{t('commands')}</dt>
          <dd dir="ltr">{commands.map((command) => `/${command}`).join(', ')}</dd>
        </>
      )}
      {allowed_updates && (
        <>
          <dt>{t('route_kinds')}</dt>
          <dd dir="ltr">{allowed_updates.join(', ')}</dd>
        </>
      )}
      <dt>{t('waiting_updates')}</dt>
      <dd>{pending_update_count}</dd>
      <dt>{t('connections')}</dt>
      <dd>{max_connections}</dd>
      <LastError of={route} />
      {next_try_date !== null && (
        <>
          <dt>{t('route_next_try')}</dt>
          <dd>{fullDate(next_try_date)}</dd>
        </>
      )}
    </dl>
  );
}

function RoutesCard({ base, routes }: { base: string; routes: readonly Route[] }) {
  return (
    <section className="card stack routes">
      <h3>{t('webhook_routes')}</h3>
      <p className="muted">{t('webhook_routes_hint')}</p>
      {routes.map((route) => (
        <section key={route.name} className="stack">
          <h4 dir="ltr">{route.name}</h4>
          <RouteFacts route={route} />
          <Test base={base} route={route.name} />
        </section>
      ))}
    </section>
  );
}

const linesOf = (headers: Ping['request']['headers'], body: string) =>
  [...headers.map(({ name, value }) => `${name}: ${value ?? `(${t('test_hidden')})`}`), '', body].join('\n');

const steps = [
  ['resolve_ms', () => t('step_resolve')],
  ['connect_ms', () => t('step_connect')],
  ['tls_ms', () => 'TLS'],
  ['answer_ms', () => t('step_answer')],
] as const;

function Exchange({
  ping: { delivered, status, error, latency_ms, times, request, answer },
}: {
  ping: Ping;
}) {
  const durations = steps.flatMap(([step, name]) =>
    times[step] === undefined ? [] : [`${name()} ${times[step]} ms`],
  );
  return (
    <ul className="attempts">
      <li>
        <details open>
          <summary>
            <span className={delivered ? 'dot good' : 'dot bad'} />
            <span className="grow" role="status">
              {error ?? t('delivered')} {status !== null && <code>{status}</code>}
              <small>{[`${latency_ms} ms`, ...durations].join(' · ')}</small>
            </span>
          </summary>
          <p className="muted">{t('test_answer')}</p>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by the keyboard too */}
          <pre className="code" tabIndex={0} dir="ltr">
            {answer
              ? linesOf(answer.headers, answer.truncated ? `${answer.body}…` : answer.body)
              : t('no_answer')}
          </pre>
          <p className="muted">{t('test_request')}</p>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by the keyboard too */}
          <pre className="code" tabIndex={0} dir="ltr">
            {linesOf(request.headers, request.body)}
          </pre>
        </details>
      </li>
    </ul>
  );
}

/** A button that sends a test request to the webhook, or to one of its routes, and shows the exchange. */
function Test({ base, route }: { base: string; route?: string }) {
  const [ping, setPing] = useState<Ping | null>(null);
  const [busy, setBusy] = useState(false);
  const send = async () => {
    setBusy(true);
    setPing(null);
    await attempt(async () => {
      setPing(await call<Ping>('POST', `${base}/ping`, route === undefined ? {} : { route }));
    });
    setBusy(false);
  };
  return (
    <>
      <p>
        <button type="button" className="button" disabled={busy} onClick={() => void send()}>
          {t(busy ? 'sending' : 'send_test')}
        </button>
      </p>
      {ping && <Exchange ping={ping} />}
    </>
  );
}

/**
 * Returns the outcome of an attempt in the person's language. If the receiver did not answer and the update will be
 * retried, returns the service's error text, which is not translated.
 */
function outcomeOf({ delivered, status, error, dead }: Attempt): string {
  if (delivered) return t('delivered');
  if (status === null && dead) return whyDead(dead);
  return (status === null ? error : null) ?? t('failed');
}

function AttemptRow({ attempt }: { attempt: Attempt }) {
  const { delivered, status, error, answer, dead } = attempt;
  const outcome = outcomeOf(attempt);
  return (
    <li>
      <details>
        <summary>
          <span className={delivered ? 'dot good' : 'dot bad'} />
          <span className="grow">
            {outcome} {status !== null && <code>{status}</code>}
            <small>
              {fullDate(attempt.date)} · {attempt.latency_ms} ms · {t('try_number', { n: attempt.tries })}
              {attempt.route !== undefined && ` · ${attempt.route}`}
            </small>
          </span>
          <code>{attempt.update_id}</code>
        </summary>
        {attempt.next_try_date !== null && (
          <p className="muted">{t('next_try', { date: fullDate(attempt.next_try_date) })}</p>
        )}
        {!delivered && error && error !== outcome && <p className="muted">{error}</p>}
        {dead && <p className="bad">{t('given_up', { reason: whyDead(dead) })}</p>}
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by the keyboard too */}
        <pre className="code" tabIndex={0} dir="ltr">
          {answer || t('no_answer')}
        </pre>
      </details>
    </li>
  );
}

const listed = 20;

export function WebhookPage({ bot }: BotProps) {
  const base = `/api/me/bots/${bot.id}/webhook`;
  const [state, setState] = useState<State | null>(null);
  const [routes, setRoutes] = useState<readonly Route[]>([]);
  const [failure, setFailure] = useState('');
  const [discarding, setDiscarding] = useState(false);
  const attempts = usePages<Attempt>(`${base}/deliveries`, listed);
  const letters = usePages<DeadLetter>(`${base}/dead_letters`, listed);
  const load = useCallback(() => {
    setFailure('');
    const fail = (error: unknown) => setFailure(reasonOf(error));
    get<State>(base).then(setState, fail);
    get<{ items: Route[] }>(`${base}/routes`).then(({ items }) => setRoutes(items), fail);
  }, [base]);
  useEffect(load, [load]);
  const refresh = () => {
    load();
    void attempts.load();
    void letters.load();
  };
  const replay = async (what: Record<string, unknown>) => {
    await attempt(async () => {
      const { queued } = await call<{ queued: number }>('POST', `${base}/replay`, what);
      say(t('replayed', { n: queued }));
    });
    refresh();
  };
  const discard = async () => {
    await attempt(async () => {
      const { discarded } = await call<{ discarded: number }>('DELETE', `${base}/dead_letters`);
      say(t('discarded', { n: discarded }));
    });
    refresh();
  };
  return (
    <>
      {failure && <Trouble text={failure} retry={load} />}
      {state ? <StateCard base={base} state={state} /> : !failure && <Spinner />}
      {routes.length > 0 && <RoutesCard base={base} routes={routes} />}
      {state && (state.url || routes.length > 0) && (
        <Suspense>
          <Replays base={base} routes={routes.map(({ name }) => name)} hasWebhook={state.url !== ''} />
        </Suspense>
      )}
      <section className="card stack">
        <header className="row wrap">
          <h3 className="grow">{t('dead_letters')}</h3>
          {(letters.items?.length ?? 0) > 0 && (
            <>
              <button type="button" className="button" onClick={() => void replay({ dead_letters: true })}>
                {t('replay_all')}
              </button>
              <button type="button" className="button danger" onClick={() => setDiscarding(true)}>
                {t('discard_all')}
              </button>
            </>
          )}
        </header>
        <p className="muted">{letters.items?.length === 0 ? t('no_dead_letters') : t('dead_letters_hint')}</p>
        {letters.failure && <Trouble text={letters.failure} retry={() => void letters.load()} />}
        <ul className="attempts">
          {letters.items?.map(({ update_id, route, reason, date, update }) => (
            <li key={update_id}>
              <details>
                <summary>
                  <span className="dot bad" />
                  <span className="grow">
                    {whyDead(reason)}
                    <small>
                      {fullDate(date)}
                      {route !== undefined && ` · ${route}`}
                    </small>
                  </span>
                  <code>{update_id}</code>
                </summary>
                {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by the keyboard too */}
                <pre className="code" tabIndex={0} dir="ltr">
                  {JSON.stringify(update, null, 2)}
                </pre>
                <button
                  type="button"
                  className="button"
                  onClick={() => void replay({ from_update_id: update_id, to_update_id: update_id })}
                >
                  {t('replay')}
                </button>
              </details>
            </li>
          ))}
        </ul>
        {letters.cursor && (
          <button type="button" className="button" onClick={() => void letters.load(letters.cursor)}>
            {t('more')}
          </button>
        )}
      </section>
      <section className="card stack">
        <header className="row">
          <h3 className="grow">{t('attempts')}</h3>
          <button type="button" className="button" onClick={refresh}>
            <Icon name="refresh" size={18} /> {t('refresh')}
          </button>
        </header>
        {attempts.failure && <Trouble text={attempts.failure} retry={() => void attempts.load()} />}
        {attempts.items?.length === 0 && <p className="muted">{t('no_attempts')}</p>}
        <ul className="attempts">
          {attempts.items?.map((attempt) => (
            <AttemptRow key={`${attempt.update_id}/${attempt.tries}/${attempt.date}`} attempt={attempt} />
          ))}
        </ul>
        {attempts.cursor && (
          <button type="button" className="button" onClick={() => void attempts.load(attempts.cursor)}>
            {t('more')}
          </button>
        )}
      </section>
      {discarding && (
        <Confirm
          title={t('discard_all')}
          text={t('discard_hint')}
          action={t('discard_all')}
          danger
          close={() => setDiscarding(false)}
          act={() => void discard()}
        />
      )}
    </>
  );
}
