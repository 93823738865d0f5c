/**
 * Signs in with a token, through an identity provider, or with a new account. If the browser has opened the one-time
 * link of `npm start`, the person can also sign in as a demo person, with one click.
 */
import { type ReactNode, useEffect, useState } from 'react';
import { ApiFailure, call } from '../api.js';
import { reasonOf } from '../failures.js';
import { providerAnswer } from '../provider_answer.js';
import { go, route } from '../route.js';
import { signIn } from '../session.js';
import type { NewSession, Self, SignInWays } from '../types.js';
import { t } from '../words.js';
import { ProviderButton, SignUp } from './sign_up.js';
import { Face, Failure, Spinner } from './ui.js';

interface DemoPerson {
  username: string;
  token: string;
}

/**
 * The key under which this browser stores the demo people. They are stored because the one-time link works only once,
 * but a second window may sign in as another demo person.
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
    // If the browser does not allow storage, the demo people are forgotten when the page is closed.
  }
}

/**
 * Loads the demo people with the one-time link in the URL. Without this link, returns those that the browser has
 * stored.
 */
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

/** The ways to sign in that are used if the service does not answer. */
const tokenOnly: SignInWays = { sign_up: false };

/** Finishes a sign-in if the identity provider's redirect has opened this page. */
async function finishedSignIn(): Promise<NewSession | null> {
  if (providerAnswer === null) return null;
  return call<NewSession>('POST', '/api/sign_in/session', { answer: providerAnswer.query }, { as: '' });
}

interface TokenFormProps {
  busy: boolean;
  failure: string;
  enter: (token: string) => void;
  children: ReactNode;
}

function TokenForm({ busy, failure, enter, children }: TokenFormProps) {
  const [secret, setSecret] = useState('');
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        enter(secret.trim());
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
      {children}
      <Failure text={failure} />
      <button type="submit" className="button primary large" disabled={busy || secret.trim() === ''}>
        {t('sign_in')}
      </button>
    </form>
  );
}

interface DemoProps {
  people: readonly DemoPerson[];
  busy: boolean;
  enter: (token: string) => void;
}

function Demo({ people, busy, enter }: DemoProps) {
  if (people.length === 0) return null;
  return (
    <section className="stack" aria-label={t('try_it')}>
      <p className="small">{t('demo_hint')}</p>
      {people.map(({ username, token }, i) => (
        <button
          key={username}
          type="button"
          className="button person"
          disabled={busy}
          onClick={() => enter(token)}
        >
          <Face id={i + 3} name={username} size={32} />
          {t('sign_in_as', { name: username })}
        </button>
      ))}
      <div className="or">{t('or')}</div>
    </section>
  );
}

/** Loads the ways to sign in. Null until the service has answered. */
function useWays(): SignInWays | null {
  const [ways, setWays] = useState<SignInWays | null>(null);
  useEffect(() => {
    call<SignInWays>('GET', '/api/sign_in', undefined, { as: '' }).then(setWays, () => setWays(tokenOnly));
  }, []);
  return ways;
}

export function SignIn() {
  const ways = useWays();
  const [people, setPeople] = useState<DemoPerson[]>([]);
  const [keep, setKeep] = useState(providerAnswer?.keep ?? false);
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(providerAnswer !== null);
  useEffect(() => void demoPeople().then(setPeople), []);
  const start = ({ token, user }: NewSession) => signIn(token, user, keep);
  // biome-ignore lint/correctness/useExhaustiveDependencies: uses the provider's answer only once
  useEffect(() => {
    finishedSignIn().then(
      (session) => session && start(session),
      (error) => {
        setFailure(reasonOf(error));
        setBusy(false);
      },
    );
  }, []);

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

  const keepBox = (
    <label className="check">
      <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.target.checked)} />
      {t('keep_signed_in')}
    </label>
  );
  const demo = <Demo people={people} busy={busy} enter={(token) => void enter(token)} />;
  const enterToken = (token: string) => void enter(token);
  const { sign_up = false, provider } = ways ?? tokenOnly;
  return (
    <main className="sign-in">
      <div className="card">
        <img src="/app/icon.svg" alt="" width="72" height="72" />
        <h1>Petrel</h1>
        <p className="muted">{t('sign_in_hint')}</p>
        {ways === null && <Spinner />}
        {ways && demo}
        {ways && !sign_up && !provider && (
          <TokenForm busy={busy} failure={failure} enter={enterToken}>
            {keepBox}
          </TokenForm>
        )}
        {(sign_up || provider) && (
          <div className="stack">
            <Failure text={failure} />
            {provider && (
              <ProviderButton name={provider.name} keep={keep} disabled={busy} fail={setFailure} />
            )}
            {sign_up && provider && <div className="or">{t('or')}</div>}
            {sign_up && <SignUp isSecond={provider !== undefined} enter={start} />}
            {keepBox}
            <details className="by-token">
              <summary>{t('sign_in_with_token')}</summary>
              <TokenForm busy={busy} failure="" enter={enterToken}>
                {null}
              </TokenForm>
            </details>
          </div>
        )}
      </div>
    </main>
  );
}
