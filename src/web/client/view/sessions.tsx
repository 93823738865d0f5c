/** Shows the browsers in which the person is signed in, and ends these sessions. Also signs out. */
import { useEffect, useState } from 'react';
import { call, get } from '../api.js';
import { attempt, reasonOf } from '../failures.js';
import { signOut } from '../session.js';
import type { Page, Session, SignInWays } from '../types.js';
import { dayText, fullDate, t } from '../words.js';
import '../words/later.js';
import { Icon } from './icons.js';
import { Confirm, Failure, IconButton } from './ui.js';

const path = '/api/me/sessions';

/** Returns the text about the day on which the session was last used. The service does not store the time of day. */
function usedText({ is_current, last_used_on }: Session): string {
  if (is_current) return t('session_here');
  return last_used_on === undefined
    ? ''
    : t('session_used', { date: dayText(Date.parse(`${last_used_on}T12:00:00`) / 1_000) });
}

function Row({ session, end }: { session: Session; end: () => void }) {
  const { agent, created_at, is_current } = session;
  const name = agent === '' ? t('agent_unknown') : agent;
  const lines = [usedText(session), t('session_began', { date: fullDate(created_at) })].filter(Boolean);
  return (
    <li className="row session">
      <span className="grow">
        <strong>{name}</strong>
        <span className="muted small">{lines.join(' · ')}</span>
      </span>
      {!is_current && <IconButton icon="out" label={t('end_session', { name })} onClick={end} />}
    </li>
  );
}

export function Sessions() {
  const [sessions, setSessions] = useState<readonly Session[]>();
  const [failure, setFailure] = useState('');
  const [asking, setAsking] = useState(false);
  const load = () =>
    get<Page<Session>>(path).then(
      ({ items }) => setSessions(items),
      (error) => setFailure(reasonOf(error)),
    );
  // biome-ignore lint/correctness/useExhaustiveDependencies: loads once
  useEffect(() => void load(), []);
  const end = (which: string) =>
    attempt(async () => {
      await call('DELETE', `${path}${which}`);
    }).then(load);
  if (sessions === undefined && failure === '') return null;
  const all = sessions ?? [];
  return (
    <section className="card stack" aria-labelledby="sessions">
      <h3 id="sessions">{t('sessions')}</h3>
      <Failure text={failure} />
      {sessions && !all.some(({ is_current }) => is_current) && (
        <p className="muted">{t('sessions_by_token')}</p>
      )}
      {all.length > 0 && (
        <ul className="sessions">
          {all.map((session) => (
            <Row key={session.id} session={session} end={() => void end(`/${session.id}`)} />
          ))}
        </ul>
      )}
      {all.some(({ is_current }) => !is_current) && (
        <button type="button" className="button danger" onClick={() => setAsking(true)}>
          {t('end_others')}
        </button>
      )}
      {asking && (
        <Confirm
          title={t('end_others')}
          text={t('end_others_hint')}
          action={t('end_others')}
          danger
          act={() => void end('')}
          close={() => setAsking(false)}
        />
      )}
    </section>
  );
}

/**
 * Returns whether the person may be unable to sign in again after this session has ended. A person who signed up here
 * has no other way to sign in. If all accounts belong to an identity provider, everybody can sign in again.
 */
async function mayBeOnlyWay(): Promise<boolean> {
  const [{ sign_up, provider }, { items }] = await Promise.all([
    get<SignInWays>('/api/sign_in'),
    get<Page<Session>>(path),
  ]);
  return (sign_up || !provider) && items.some(({ is_current }) => is_current);
}

export function SignOut() {
  const [asking, setAsking] = useState(false);
  const leave = () =>
    mayBeOnlyWay().then(
      (isOnly) => (isOnly ? setAsking(true) : signOut()),
      () => signOut(),
    );
  return (
    <section className="card">
      <button type="button" className="button danger" onClick={() => void leave()}>
        <Icon name="out" size={18} /> {t('sign_out')}
      </button>
      {asking && (
        <Confirm
          title={t('sign_out')}
          text={t('sign_out_hint')}
          action={t('sign_out')}
          danger
          act={() => signOut()}
          close={() => setAsking(false)}
        />
      )}
    </section>
  );
}
