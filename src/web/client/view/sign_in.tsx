/**
 * Signs in with a token. A browser that opened the one-time link of `npm start` can also sign in as a demo person, with
 * one click.
 */
import { useEffect, useState } from 'react';
import { ApiFailure, call } from '../api.js';
import { reasonOf } from '../failures.js';
import { go, route } from '../route.js';
import { signIn } from '../session.js';
import type { Self } from '../types.js';
import { t } from '../words.js';
import { Face, Failure } from './ui.js';

interface DemoPerson {
  username: string;
  token: string;
}

/**
 * Stores the demo people in this browser, because the one-time link works only once. A second window can then sign in
 * as another person.
 */
const keptAt = 'petrel.demo';

function keptPeople(): DemoPerson[] {
  try {
    return JSON.parse(localStorage.getItem(keptAt) ?? '[]') as DemoPerson[];
  } catch {
    return [];
  }
}

function keepPeople(people: DemoPerson[]): void {
  try {
    if (people.length === 0) localStorage.removeItem(keptAt);
    else localStorage.setItem(keptAt, JSON.stringify(people));
  } catch {
    // If storage is missing, the demo people are offered until the page is closed.
  }
}

/** Loads the demo people from the one-time link in the URL, or from a link that this browser opened before. */
async function demoPeople(): Promise<DemoPerson[]> {
  const { page, id } = route.value;
  if (page !== 'demo') return keptPeople();
  go('');
  try {
    const headers = { Authorization: `Bearer ${id}` };
    const answer = await fetch('/app/demo', { method: 'POST', cache: 'no-store', headers });
    if (!answer.ok) return keptPeople();
    const { people } = ((await answer.json()) as { result: { people: DemoPerson[] } }).result;
    keepPeople(people);
    return people;
  } catch {
    return keptPeople();
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
      signIn(token, await call<Self>('GET', '/api/me', undefined, { as: token }), keep);
    } catch (error) {
      const wrong = error instanceof ApiFailure && error.status === 401;
      if (wrong) keepPeople(people.filter((person) => person.token !== token));
      setFailure(wrong ? t('token_wrong') : reasonOf(error));
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
          <Failure text={failure} />
          <button type="submit" className="button primary large" disabled={busy || secret.trim() === ''}>
            {t('sign_in')}
          </button>
        </form>
      </div>
    </main>
  );
}
