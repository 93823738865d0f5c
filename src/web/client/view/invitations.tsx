/** Shows the chats to which the person is invited, above the list of chats. */
import { useState } from 'react';
import { attempt } from '../failures.js';
import { answerInvitation, invitations } from '../model/chats.js';
import { chatName, personName } from '../names.js';
import { go } from '../route.js';
import { useCell } from '../signal.js';
import { t } from '../words.js';
import { Face } from './ui.js';

export default function Invitations() {
  const open = useCell(invitations);
  const [busy, setBusy] = useState(false);
  if (open.length === 0) return null;
  const answer = async (chat: number, what: 'accept' | 'decline') => {
    setBusy(true);
    await attempt(async () => {
      await answerInvitation(chat, what);
      if (what === 'accept') go(`chat/${chat}`);
    });
    setBusy(false);
  };
  return (
    <section className="invitations" aria-label={t('invitations')}>
      {open.map(({ chat, from }) => (
        <div className="invitation" key={chat.id}>
          <Face id={chat.id} name={chatName(chat)} size={40} />
          <span className="grow">
            <strong>
              <bdi>{chatName(chat)}</bdi>
            </strong>
            <small>{t('invited_by', { name: personName(from) })}</small>
          </span>
          <span className="row">
            <button
              type="button"
              className="button"
              disabled={busy}
              onClick={() => void answer(chat.id, 'decline')}
            >
              {t('decline')}
            </button>
            <button
              type="button"
              className="button primary"
              disabled={busy}
              onClick={() => void answer(chat.id, 'accept')}
            >
              {t('accept')}
            </button>
          </span>
        </div>
      ))}
    </section>
  );
}
