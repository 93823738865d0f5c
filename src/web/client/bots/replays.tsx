/**
 * Starts replays, which deliver stored updates to a webhook again, and shows their progress. This code is loaded only
 * with the page of a webhook.
 */
import { useCallback, useEffect, useId, useState } from 'react';
import { call, get } from '../api.js';
import { attempt, reasonOf } from '../failures.js';
import { Field, Trouble } from '../view/ui.js';
import { fullDate, t } from '../words.js';

interface Replay {
  replay_id: number;
  route?: string;
  state: 'running' | 'done' | 'cancelled';
  from_update_id?: number;
  from_time?: number;
  last_update_id: number;
  reached_update_id: number | null;
  start_date: number;
  delivered_count: number;
  pending_count: number;
  dead_letter_count: number;
  last_error_message: string | null;
}

const refresh_ms = 2_000;
const shown_max = 5;
const day_ms = 86_400_000;

/** Returns a time in the form of a `datetime-local` input's value, which has no time zone. */
function localValue(ms: number): string {
  const offset_ms = new Date(ms).getTimezoneOffset() * 60_000;
  return new Date(ms - offset_ms).toISOString().slice(0, 16);
}

function Entry({ replay, cancel }: { replay: Replay; cancel: () => void }) {
  const { route, state, from_update_id: from, from_time: time, last_error_message: error } = replay;
  return (
    <section className="stack">
      <h4>
        <span dir="ltr">{route ?? t('webhook')}</span> · {t(`replay_${state}`)}
      </h4>
      <dl className="facts">
        <dt>{t('replays_from')}</dt>
        <dd>{time === undefined ? <code>{from}</code> : fullDate(time)}</dd>
        <dt>{t('replays_reached')}</dt>
        <dd>
          <code>
            {replay.reached_update_id ?? '–'} / {replay.last_update_id}
          </code>
        </dd>
        <dt>{t('delivered')}</dt>
        <dd>{replay.delivered_count}</dd>
        <dt>{t('waiting_updates')}</dt>
        <dd>{replay.pending_count}</dd>
        <dt>{t('dead_letters')}</dt>
        <dd>{replay.dead_letter_count}</dd>
        {error && (
          <>
            <dt>{t('last_error')}</dt>
            <dd className="bad">{error}</dd>
          </>
        )}
      </dl>
      {state === 'running' && (
        <p>
          <button type="button" className="button danger" onClick={cancel}>
            {t('cancel')}
          </button>
        </p>
      )}
    </section>
  );
}

interface TargetProps {
  route: string;
  routes: readonly string[];
  hasWebhook: boolean;
  choose: (route: string) => void;
}

function Target({ route, routes, hasWebhook, choose }: TargetProps) {
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{t('replays_target')}</label>
      <select id={id} value={route} onChange={(event) => choose(event.target.value)}>
        {hasWebhook && <option value="">{t('webhook')}</option>}
        {routes.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}

/**
 * Shows the form for a new replay, and the latest replays. While a replay is running, loads the list of replays
 * repeatedly.
 */
export default function Replays({
  base,
  routes,
  hasWebhook,
}: Pick<TargetProps, 'routes' | 'hasWebhook'> & { base: string }) {
  const [replays, setReplays] = useState<readonly Replay[]>([]);
  const [failure, setFailure] = useState('');
  const [route, setRoute] = useState(hasWebhook ? '' : (routes[0] ?? ''));
  const [from, setFrom] = useState(() => localValue(Date.now() - day_ms));
  const [busy, setBusy] = useState(false);
  const load = useCallback(() => {
    get<{ items: Replay[] }>(`${base}/replays`).then(
      ({ items }) => {
        setFailure('');
        setReplays(items.slice(0, shown_max));
      },
      (error: unknown) => setFailure(reasonOf(error)),
    );
  }, [base]);
  useEffect(load, [load]);
  const running = replays.some(({ state }) => state === 'running');
  useEffect(() => {
    if (!running) return undefined;
    const timer = setInterval(load, refresh_ms);
    return () => clearInterval(timer);
  }, [running, load]);
  const change = async (work: () => Promise<unknown>) => {
    setBusy(true);
    await attempt(work);
    setBusy(false);
    load();
  };
  const start = () => {
    const from_time = Math.floor(new Date(from).getTime() / 1_000);
    return call('POST', `${base}/replays`, { from_time, ...(route === '' ? {} : { route }) });
  };
  return (
    <form
      className="card stack replays"
      onSubmit={(event) => {
        event.preventDefault();
        void change(start);
      }}
    >
      <h3>{t('replays')}</h3>
      <p className="muted">{t('replays_hint')}</p>
      <Target route={route} routes={routes} hasWebhook={hasWebhook} choose={setRoute} />
      <Field label={t('replays_from')} value={from} set={setFrom} type="datetime-local" required />
      <div className="row end">
        <button type="submit" className="button primary" disabled={busy || running}>
          {t('replays_start')}
        </button>
      </div>
      {failure && <Trouble text={failure} retry={load} />}
      {replays.map((replay) => (
        <Entry
          key={replay.replay_id}
          replay={replay}
          cancel={() => void change(() => call('DELETE', `${base}/replays/${replay.replay_id}`))}
        />
      ))}
    </form>
  );
}
