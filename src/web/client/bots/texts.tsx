/** Edits the texts of a bot in each language, and shows how many characters are left. */
import { useState } from 'react';
import { call } from '../api.js';
import { attempt } from '../failures.js';
import { say } from '../notes.js';
import type { BotProps } from '../types.js';
import { Field, lengthOf } from '../view/ui.js';
import { languages, t } from '../words.js';

const kinds = [
  ['name', 64, false],
  ['short_description', 120, true],
  ['description', 512, true],
] as const;

export function TextsPage({ bot, changed }: BotProps) {
  const [code, setCode] = useState('');
  const [texts, setTexts] = useState(bot.texts);
  const [busy, setBusy] = useState(false);
  const over = kinds.some(([kind, max]) => Object.values(texts[kind]).some((text) => lengthOf(text) > max));
  const set = (kind: (typeof kinds)[number][0]) => (text: string) =>
    setTexts({ ...texts, [kind]: { ...texts[kind], [code]: text } });
  const save = async () => {
    setBusy(true);
    await attempt(async () => {
      await call('PATCH', `/api/me/bots/${bot.id}`, texts as unknown as Record<string, unknown>);
      say(t('saved'));
      changed();
    });
    setBusy(false);
  };
  const isSet = (one: string) => kinds.some(([kind]) => (texts[kind][one] ?? '') !== '');
  return (
    <form
      className="card stack"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <fieldset className="chips">
        <legend>{t('language')}</legend>
        {['', ...Object.keys(languages)].map((one) => (
          <label key={one} className={code === one ? 'chip chosen' : 'chip'}>
            <input type="radio" name="language" checked={code === one} onChange={() => setCode(one)} />
            {one === '' ? t('by_default') : languages[one as keyof typeof languages]}
            {isSet(one) && <span aria-hidden="true"> •</span>}
          </label>
        ))}
      </fieldset>
      <p className="muted">{t(code === '' ? 'default_text_hint' : 'language_text_hint')}</p>
      {kinds.map(([kind, max, multiline]) => (
        <Field
          key={`${kind}${code}`}
          label={t(kind)}
          value={texts[kind][code] ?? ''}
          set={set(kind)}
          max={max}
          multiline={multiline}
          hint={t(`${kind}_hint`)}
          placeholder={code === '' ? (kind === 'name' ? bot.name : '') : texts[kind]['']}
        />
      ))}
      <div className="row end">
        <button type="submit" className="button primary" disabled={busy || over}>
          {t('save')}
        </button>
      </div>
    </form>
  );
}
