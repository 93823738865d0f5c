/** Shows the signed-in person's name and avatar, and lets the person change them. */
import { useState } from 'react';
import { call } from '../api.js';
import { attempt } from '../failures.js';
import { loadSelf, takeSelf } from '../model/people.js';
import { personName } from '../names.js';
import { say } from '../notes.js';
import type { Self } from '../types.js';
import { t } from '../words.js';
import '../words/later.js';
import { PictureEditor } from './picture_editor.js';
import { Face, Field, lengthOf } from './ui.js';

const name_length_max = 64;

function NameForm({ user }: { user: Self }) {
  const [first, setFirst] = useState(user.first_name);
  const [last, setLast] = useState(user.last_name ?? '');
  const [busy, setBusy] = useState(false);
  const isSame = first.trim() === user.first_name && last.trim() === (user.last_name ?? '');
  const isValid =
    first.trim() !== '' && [first, last].every((text) => lengthOf(text.trim()) <= name_length_max);
  const save = async () => {
    setBusy(true);
    await attempt(async () => {
      takeSelf(await call<Self>('PATCH', '/api/me', { first_name: first, last_name: last }));
      say(t('saved'));
    });
    setBusy(false);
  };
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      <Field label={t('given_name')} value={first} set={setFirst} max={name_length_max} required />
      <Field label={t('family_name')} value={last} set={setLast} max={name_length_max} />
      <div className="row end">
        <button type="submit" className="button primary" disabled={busy || isSame || !isValid}>
          {t('save')}
        </button>
      </div>
    </form>
  );
}

export function OwnProfile({ user }: { user: Self }) {
  const name = personName(user);
  return (
    <section className="card stack">
      <div className="row wrap own-profile">
        <Face id={user.id} name={name} picture={user.avatar} size={96} />
        <div className="stack grow">
          <span>
            <strong>
              <bdi>{name}</bdi>
            </strong>
            <p className="muted">{user.username && `@${user.username}`}</p>
          </span>
          <PictureEditor
            kind="avatar"
            path="/api/me/avatar"
            isSet={user.avatar !== undefined}
            changed={loadSelf}
          />
        </div>
      </div>
      <p className="muted">{t('profile_hint')}</p>
      {/* The key replaces the typed name if another window has changed the stored name. */}
      <NameForm key={`${user.first_name}/${user.last_name ?? ''}`} user={user} />
    </section>
  );
}
