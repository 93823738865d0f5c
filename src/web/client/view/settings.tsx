/** Settings: the language of the person, the look of this browser, and signing out. */
import { call, reasonOf } from '../api.js';
import { personName, profiles } from '../names.js';
import { say } from '../notes.js';
import { me, signOut } from '../session.js';
import { useCell } from '../signal.js';
import { setTheme, theme, themes } from '../theme.js';
import type { User } from '../types.js';
import { type Language, language, languages, setLanguage, t } from '../words.js';
import { Icon } from './icons.js';
import { Face } from './ui.js';

/** Kept on the account: bots are told it, and show their texts in it. */
async function choose(code: Language): Promise<void> {
  try {
    await setLanguage(code, true);
    me.set(await call<User>('PATCH', '/api/me', { language_code: code }));
    profiles.forget();
  } catch (error) {
    say(reasonOf(error));
  }
}

export function Settings() {
  const chosen = useCell(language);
  const look = useCell(theme);
  const user = me.value;
  return (
    <main className="main page" lang={chosen}>
      <header className="bar">
        <a className="icon-button only-narrow" href="#/" aria-label={t('back')}>
          <Icon name="back" />
        </a>
        <h2 className="bar-title">{t('settings')}</h2>
      </header>
      <div className="page-body">
        <section className="card">
          <div className="row">
            <Face id={user?.id ?? 0} name={personName(user ?? undefined)} size={64} />
            <span>
              <strong>
                <bdi>{personName(user ?? undefined)}</bdi>
              </strong>
              <p className="muted">{user?.username && `@${user.username}`}</p>
            </span>
          </div>
        </section>
        <section className="card stack">
          <div className="field">
            <label htmlFor="language">{t('language')}</label>
            <select
              id="language"
              value={chosen}
              aria-describedby="language-hint"
              onChange={(event) => void choose(event.target.value as Language)}
            >
              {Object.entries(languages).map(([code, name]) => (
                <option key={code} value={code} lang={code}>
                  {name}
                </option>
              ))}
            </select>
            <p className="hint" id="language-hint">
              {t('language_hint')}
            </p>
          </div>
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
        <section className="card">
          <button type="button" className="button danger" onClick={signOut}>
            <Icon name="out" size={18} /> {t('sign_out')}
          </button>
        </section>
      </div>
    </main>
  );
}
