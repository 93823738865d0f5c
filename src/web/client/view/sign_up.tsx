/** Shows the ways to sign in without a token: an identity provider, or the form for a new account. */
import { useState } from 'react';
import { call } from '../api.js';
import { reasonOf } from '../failures.js';
import { rememberPage } from '../provider_answer.js';
import type { NewSession, StartedSignIn } from '../types.js';
import { language, t } from '../words.js';
import { Failure, Field } from './ui.js';

const name_length_max = 64;

interface ProviderProps {
  name: string;
  keep: boolean;
  disabled: boolean;
  fail: (reason: string) => void;
}

/** Shows the button that sends the person to the identity provider. */
export function ProviderButton({ name, keep, disabled, fail }: ProviderProps) {
  const [leaving, setLeaving] = useState(false);
  const begin = async () => {
    fail('');
    setLeaving(true);
    try {
      const { url } = await call<StartedSignIn>('POST', '/api/sign_in/provider', {}, { as: '' });
      rememberPage(keep);
      location.assign(url);
    } catch (error) {
      fail(reasonOf(error));
      setLeaving(false);
    }
  };
  return (
    <button
      type="button"
      className="button primary large"
      disabled={disabled || leaving}
      onClick={() => void begin()}
    >
      {t('sign_in_with', { name })}
    </button>
  );
}

interface SignUpProps {
  /** Whether the page also shows the button of an identity provider, which is then the primary button. */
  isSecond: boolean;
  enter: (session: NewSession) => void;
}

export function SignUp({ isSecond, enter }: SignUpProps) {
  const [name, setName] = useState('');
  const [username, setUsername] = useState('');
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(false);
  const make = async () => {
    setBusy(true);
    setFailure('');
    try {
      const given = { first_name: name, username: username.trim().replace(/^@/, '') };
      const body = { ...given, language_code: language.value };
      enter(await call<NewSession>('POST', '/api/sign_up', body, { as: '' }));
    } catch (error) {
      setFailure(reasonOf(error));
      setBusy(false);
    }
  };
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void make();
      }}
    >
      <Field label={t('name')} value={name} set={setName} max={name_length_max} required />
      <Field
        label={t('username')}
        value={username}
        set={setUsername}
        hint={t('username_hint')}
        placeholder="maria_k"
        required
      />
      <Failure text={failure} />
      <button
        type="submit"
        className={isSecond ? 'button large' : 'button primary large'}
        disabled={busy || name.trim() === '' || username.trim() === ''}
      >
        {t('create_account')}
      </button>
    </form>
  );
}
