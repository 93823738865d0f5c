/**
 * Shows the settings: the person's name, avatar and language, this browser's notifications and colour scheme, and the
 * sign-out.
 */
import { useEffect, useState } from 'react';
import { call } from '../api.js';
import { attempt, reasonOf } from '../failures.js';
import { profiles } from '../names.js';
import { say } from '../notes.js';
import { pushChoice, turnOff, turnOn } from '../push.js';
import { me } from '../session.js';
import { useCell } from '../signal.js';
import { setTheme, theme, themes } from '../theme.js';
import type { AddPolicy, Self, StoredUploads } from '../types.js';
import { type Language, language, languages, setLanguage, t } from '../words.js';
import { Icon } from './icons.js';
import { sizeText } from './media.js';
import { OwnProfile } from './own_profile.js';
import { BlockedPeople } from './person.js';
import { Sessions, SignOut } from './sessions.js';

/** Shows the settings for notifications, or nothing if the service or the browser does not support them. */
function Notifications() {
  const choice = useCell(pushChoice);
  const [busy, setBusy] = useState(false);
  if (choice === 'none') return null;
  const change = async (on: boolean) => {
    setBusy(true);
    try {
      await (on ? turnOn() : turnOff());
    } catch {
      say(t('push_failed'));
    }
    setBusy(false);
  };
  return (
    <section className="card stack">
      <label className="check">
        <input
          type="checkbox"
          role="switch"
          aria-checked={choice === 'on'}
          checked={choice === 'on'}
          disabled={busy || choice === 'blocked'}
          onChange={(event) => void change(event.target.checked)}
        />
        {t('notifications')}
      </label>
      <p className="muted">{choice === 'blocked' ? t('push_blocked') : t('notifications_hint')}</p>
    </section>
  );
}

interface ChoiceProps {
  id: string;
  label: string;
  hint: string;
  value: string;
  /** The options of the select box, as pairs of value and label. */
  options: ReadonlyArray<readonly [value: string, name: string]>;
  /** Whether the values are language codes. Each label is then marked up as text in its language. */
  langs?: boolean;
  choose: (value: string) => void;
}

/** Shows a select box with a label and a hint. */
function Choice({ id, label, hint, value, options, langs = false, choose }: ChoiceProps) {
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <select
        id={id}
        value={value}
        aria-describedby={`${id}-hint`}
        onChange={(event) => choose(event.target.value)}
      >
        {options.map(([each, name]) => (
          <option key={each} value={each} lang={langs ? each : undefined}>
            {name}
          </option>
        ))}
      </select>
      <p className="hint" id={`${id}-hint`}>
        {hint}
      </p>
    </div>
  );
}

/** Stores the language in the account. Bots receive this language and can show their texts in it. */
async function choose(code: Language): Promise<void> {
  await attempt(async () => {
    await setLanguage(code, true);
    me.set(await call<Self>('PATCH', '/api/me', { language_code: code }));
    profiles.forget();
  });
}

const policies = [
  ['everyone', 'add_everyone'],
  ['shared_chats', 'add_shared'],
  ['nobody', 'add_nobody'],
] as const;

/** Sets who may add the person to groups and channels. */
function WhoMayAdd() {
  const chosen = useCell(me)?.add_to_groups ?? 'everyone';
  const choose = (add_to_groups: AddPolicy) =>
    attempt(async () => {
      me.set(await call<Self>('PATCH', '/api/me', { add_to_groups }));
    });
  return (
    <section className="card stack">
      <Choice
        id="add-to-groups"
        label={t('add_to_groups')}
        hint={t('add_hint')}
        value={chosen}
        options={policies.map(([policy, words]) => [policy, t(words)])}
        choose={(policy) => void choose(policy as AddPolicy)}
      />
    </section>
  );
}

/** Sets who may start a chat with the person, and lists the blocked people. */
function WhoMayWrite() {
  const chosen = useCell(me)?.start_chats ?? 'everyone';
  const choose = (start_chats: AddPolicy) =>
    attempt(async () => {
      me.set(await call<Self>('PATCH', '/api/me', { start_chats }));
    });
  return (
    <section className="card stack">
      <Choice
        id="start-chats"
        label={t('start_chats')}
        hint={t('start_chats_hint')}
        value={chosen}
        options={policies.map(([policy, words]) => [policy, t(words)])}
        choose={(policy) => void choose(policy as AddPolicy)}
      />
      <BlockedPeople />
    </section>
  );
}

/**
 * Shows how much storage is used by the files of the person and of the person's bots, and the limit if there is one.
 */
function Uploads() {
  const [stored, setStored] = useState<StoredUploads>();
  useEffect(() => {
    call<StoredUploads>('GET', '/api/me/uploads').then(setStored, (error) => say(reasonOf(error)));
  }, []);
  if (stored === undefined) return null;
  const sizes = [stored.bytes, stored.bytes_max].filter((bytes) => bytes !== undefined);
  return (
    <section className="card stack">
      <h3>{t('uploads')}</h3>
      <p className="muted">{sizes.map(sizeText).join(' / ')}</p>
    </section>
  );
}

export function Settings() {
  const chosen = useCell(language);
  const look = useCell(theme);
  const user = useCell(me);
  return (
    <main className="main page" lang={chosen}>
      <header className="bar">
        <a className="icon-button only-narrow" href="#/" aria-label={t('back')}>
          <Icon name="back" />
        </a>
        <h2 className="bar-title">{t('settings')}</h2>
      </header>
      <div className="page-body">
        {user && <OwnProfile user={user} />}
        <section className="card stack">
          <Choice
            id="language"
            label={t('language')}
            hint={t('language_hint')}
            value={chosen}
            options={Object.entries(languages)}
            langs
            choose={(code) => void choose(code as Language)}
          />
          <fieldset className="choices across">
            <legend>{t('look')}</legend>
            {themes.map((one) => (
              <label key={one} className="choice">
                <input type="radio" name="theme" checked={look === one} onChange={() => setTheme(one)} />
                <span>{t(`theme_${one}`)}</span>
              </label>
            ))}
          </fieldset>
        </section>
        <WhoMayAdd />
        <WhoMayWrite />
        <Notifications />
        <Uploads />
        <Sessions />
        <SignOut />
      </div>
    </main>
  );
}
