/** Shows the inline mode of a bot. */
import { useState } from 'react';
import { call } from '../api.js';
import { attempt } from '../failures.js';
import { say } from '../notes.js';
import type { BotProps } from '../types.js';
import { Field } from '../view/ui.js';
import { t } from '../words.js';

const placeholder_max = 64;

export function InlinePage({ bot, changed }: BotProps) {
  const [enabled, setEnabled] = useState(bot.inline_mode !== undefined);
  const [placeholder, setPlaceholder] = useState(bot.inline_mode?.placeholder ?? '');
  const [feedback, setFeedback] = useState(bot.inline_mode?.feedback ?? false);
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    await attempt(async () => {
      const mode = enabled ? { enabled, placeholder, feedback } : { enabled };
      await call('PUT', `/api/me/bots/${bot.id}/inline_mode`, mode);
      say(t('saved'));
      changed();
    });
    setBusy(false);
  };
  return (
    <form
      className="card stack"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <h3>{t('tab_inline')}</h3>
      <p className="muted">{t('inline_hint', { name: `@${bot.username}` })}</p>
      <label className="choice">
        <input type="checkbox" checked={enabled} onChange={() => setEnabled(!enabled)} />
        <span>{t('inline_on')}</span>
      </label>
      {enabled && (
        <>
          <Field
            label={t('inline_placeholder')}
            value={placeholder}
            set={setPlaceholder}
            max={placeholder_max}
          />
          <label className="choice">
            <input type="checkbox" checked={feedback} onChange={() => setFeedback(!feedback)} />
            <span>{t('inline_feedback')}</span>
          </label>
        </>
      )}
      <div className="row end">
        <button type="submit" className="button primary" disabled={busy}>
          {t('save')}
        </button>
      </div>
    </form>
  );
}
