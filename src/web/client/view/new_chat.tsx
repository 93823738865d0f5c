/** Shows the form for a new chat with a person, and for a new group or channel. */
import { useState } from 'react';
import { call } from '../api.js';
import { reasonOf } from '../failures.js';
import { chats } from '../model/chats.js';
import { go } from '../route.js';
import type { ChatSummary } from '../types.js';
import { t } from '../words.js';
import { openPerson } from './person.js';
import { Dialog, Failure, Field } from './ui.js';

export function NewChat({ close }: { close: () => void }) {
  const [type, setType] = useState<'person' | 'group' | 'channel'>('person');
  const [title, setTitle] = useState('');
  const [username, setUsername] = useState('');
  const [hidden, setHidden] = useState(true);
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(false);

  const needed = type === 'person' ? [username] : hidden ? [title] : [title, username];

  async function make() {
    setBusy(true);
    try {
      const name = username.trim().replace(/^@/, '');
      if (type === 'person') {
        await openPerson(name);
        close();
        return;
      }
      const chat = await call<ChatSummary>('POST', '/api/chats', {
        type,
        title,
        ...(hidden ? {} : { username: name }),
        private: hidden,
      });
      await chats.refresh(chat.id);
      close();
      go(`chat/${chat.id}`);
    } catch (error) {
      setFailure(reasonOf(error));
      setBusy(false);
    }
  }

  return (
    <Dialog title={t('new_chat')} close={close}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void make();
        }}
      >
        <fieldset className="choices">
          <legend className="sr-only">{t('kind')}</legend>
          {(['person', 'group', 'channel'] as const).map((kind) => (
            <label key={kind} className="choice">
              <input type="radio" name="type" checked={type === kind} onChange={() => setType(kind)} />
              <span>
                <strong>{t(kind)}</strong>
                <small>{t(`${kind}_hint`)}</small>
              </span>
            </label>
          ))}
        </fieldset>
        {type === 'person' ? (
          <Field label={t('username')} value={username} set={setUsername} placeholder="alice" required />
        ) : (
          <>
            <Field label={t('title')} value={title} set={setTitle} max={128} required />
            <label className="check">
              <input
                type="checkbox"
                checked={!hidden}
                onChange={(event) => setHidden(!event.target.checked)}
              />
              {t('public')}
            </label>
            {!hidden && (
              <Field label={t('username')} value={username} set={setUsername} placeholder="news" required />
            )}
          </>
        )}
        <Failure text={failure} />
        <div className="row end dialog-foot">
          <button type="button" className="button" onClick={close}>
            {t('cancel')}
          </button>
          <button
            type="submit"
            className="button primary"
            disabled={busy || needed.some((text) => text.trim() === '')}
          >
            {t(type === 'person' ? 'open_chat' : 'create')}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
