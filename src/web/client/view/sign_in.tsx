/** Signing in by a token; on an installation of `npm start`, with one click as one of its people. */
import { useEffect, useState } from 'react';
import { ApiFailure, call } from '../api.js';
import { reasonOf } from '../failures.js';
import { signIn } from '../session.js';
import type { User } from '../types.js';
import { t } from '../words.js';
import { Face } from './ui.js';

interface DemoPerson {
  username: string;
  token: string;
}

/** Nobody outside of `dev`: there the path is not served. */
async function demoPeople(): Promise<DemoPerson[]> {
  try {
    const answer = await fetch('/app/demo', { cache: 'no-store' });
    if (!answer.ok) return [];
    return ((await answer.json()) as { result: { people: DemoPerson[] } }).result.people;
  } catch {
    return [];
  }
}

export function SignIn() {
  const [people, setPeople] = useState<DemoPerson[]>([]);
  const [secret, setSecret] = useState('');
  const [keep, setKeep] = useState(false);
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(false);
  useEffect(() => void demoPeople().then(setPeople), []);

  async function enter(token: string) {
    setBusy(true);
    setFailure('');
    try {
      signIn(token, await call<User>('GET', '/api/me', undefined, { as: token }), keep);
    } catch (error) {
      setFailure(error instanceof ApiFailure && error.status === 401 ? t('token_wrong') : reasonOf(error));
      setBusy(false);
    }
  }

  return (
    <main className="sign-in">
      <div className="card">
        <img src="/app/icon.svg" alt="" width="72" height="72" />
        <h1>Petrel</h1>
        <p className="muted">{t('sign_in_hint')}</p>
        {people.length > 0 && (
          <section className="stack" aria-label={t('try_it')}>
            <p className="small">{t('demo_hint')}</p>
            {people.map(({ username, token }, i) => (
              <button
                key={username}
                type="button"
                className="button person"
                disabled={busy}
                onClick={() => void enter(token)}
              >
                <Face id={i + 3} name={username} size={32} />
                {t('sign_in_as', { name: username })}
              </button>
            ))}
            <div className="or">{t('or')}</div>
          </section>
        )}
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault();
            void enter(secret.trim());
          }}
        >
          <div className="field">
            <label htmlFor="token">{t('your_token')}</label>
            <input
              id="token"
              type="password"
              autoComplete="off"
              spellCheck={false}
              value={secret}
              onChange={(event) => setSecret(event.target.value)}
            />
          </div>
          <label className="check">
            <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.target.checked)} />
            {t('keep_signed_in')}
          </label>
          {failure && (
            <p className="failure" role="alert">
              {failure}
            </p>
          )}
          <button type="submit" className="button primary large" disabled={busy || secret.trim() === ''}>
            {t('sign_in')}
          </button>
        </form>
      </div>
    </main>
  );
}
