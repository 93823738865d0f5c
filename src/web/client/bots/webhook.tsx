/** Shows a bot's webhook: the state, each delivery attempt, and the dead letters. */
import { useCallback, useEffect, useState } from 'react';
import { call, get } from '../api.js';
import { attempt, reasonOf } from '../failures.js';
import { say } from '../notes.js';
import { usePages } from '../pages.js';
import type { BotProps } from '../types.js';
import { Icon } from '../view/icons.js';
import { Confirm, Spinner, Trouble } from '../view/ui.js';
import { fullDate, t } from '../words.js';

interface State {
  url: string;
  pending_update_count: number;
  last_error_date: number | null;
  last_error_message: string | null;
  max_connections: number;
  ip_address?: string;
}

interface Attempt {
  update_id: number;
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

interface DeadLetter {
  update_id: number;
  reason: string;
  date: number;
  update: unknown;
}

const reasons = {
  expired: 'dead_expired',
  too_large: 'dead_too_large',
  queue_full: 'dead_queue_full',
} as const;

/** Returns a text that says why an update is no longer retried. */
function whyDead(reason: string): string {
  const key = Object.entries(reasons).find(([name]) => name === reason)?.[1];
  return key ? t(key) : reason;
}

function StateCard({ state }: { state: State }) {
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
        <dt>{t('last_error')}</dt>
        <dd className={state.last_error_message ? 'bad' : ''}>
          {state.last_error_message && state.last_error_date
            ? `${state.last_error_message} · ${fullDate(state.last_error_date)}`
            : t('none')}
        </dd>
      </dl>
    </section>
  );
}

/**
 * Returns the outcome in the person's language, if it is translated. Errors of a receiver keep the text of the service.
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
  const [failure, setFailure] = useState('');
  const [discarding, setDiscarding] = useState(false);
  const attempts = usePages<Attempt>(`${base}/deliveries`, listed);
  const letters = usePages<DeadLetter>(`${base}/dead_letters`, listed);
  const load = useCallback(() => {
    setFailure('');
    get<State>(base).then(setState, (error) => setFailure(reasonOf(error)));
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
      {state ? <StateCard state={state} /> : !failure && <Spinner />}
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
          {letters.items?.map(({ update_id, reason, date, update }) => (
            <li key={update_id}>
              <details>
                <summary>
                  <span className="dot bad" />
                  <span className="grow">
                    {whyDead(reason)}
                    <small>{fullDate(date)}</small>
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
