/** Shows a public chat that the person has not joined: its description, its posts, and a button to join. */
import { lazy, useEffect, useState } from 'react';
import { ApiFailure, call, get } from '../api.js';
import { attempt, reasonOf } from '../failures.js';
import { chats } from '../model/chats.js';
import { chatName } from '../names.js';
import { go } from '../route.js';
import type { PublicChat } from '../types.js';
import { t } from '../words.js';
import type { AlbumItem } from './album.js';
import { Icon } from './icons.js';
import { PostsPage } from './posts.js';
import { Face, Part, Spinner, Trouble } from './ui.js';

const Viewer = lazy(() => import('./viewer.js'));

function Join({ id }: { id: number }) {
  const [busy, setBusy] = useState(false);
  const join = async () => {
    setBusy(true);
    await attempt(async () => {
      await call('POST', `/api/chats/${id}/join`);
      await chats.refresh(id);
    });
    setBusy(false);
  };
  return (
    <button type="button" className="button primary large" disabled={busy} onClick={() => void join()}>
      {t('join')}
    </button>
  );
}

/** Says that a chat does not exist, or that the person must join it. */
function Unknown({ id, text }: { id: number; text: string }) {
  return (
    <main className="main center">
      <div className="card stack center-text">
        <p>{id < 0 ? t('join_hint') : text}</p>
        <div className="row center-row">
          <button type="button" className="button" onClick={() => go('')}>
            {t('back')}
          </button>
          {id < 0 && <Join id={id} />}
        </div>
      </div>
    </main>
  );
}

function Preview({ chat }: { chat: PublicChat }) {
  const [shown, show] = useState<{ items: readonly AlbumItem[]; first: AlbumItem } | null>(null);
  const name = chatName(chat);
  return (
    <main className="main">
      <header className="bar chat-bar">
        <a className="icon-button only-narrow" href="#/" aria-label={t('back')}>
          <Icon name="back" />
        </a>
        <span className="chat-title">
          <Face id={chat.id} name={name} picture={chat.avatar} size={42} />
          <span>
            <strong>
              <bdi>{name}</bdi>
            </strong>
            <small>{t('members_count', { n: chat.member_count })}</small>
          </span>
        </span>
      </header>
      {chat.description && (
        <p className="outside-about pre-line" dir="auto">
          {chat.description}
        </p>
      )}
      {chat.type === 'channel' ? (
        <PostsPage chat={chat} open={(first, items = []) => show({ items, first })} />
      ) : (
        <div className="grow" />
      )}
      <footer className="start-foot">
        <Join id={chat.id} />
      </footer>
      {shown && (
        <Part>
          <Viewer {...shown} close={() => show(null)} />
        </Part>
      )}
    </main>
  );
}

export function Outside({ id, text }: { id: number; text: string }) {
  const [chat, setChat] = useState<PublicChat | null>(null);
  const [failure, setFailure] = useState('');
  const [isUnknown, setUnknown] = useState(id > 0);
  const load = () => {
    setFailure('');
    get<PublicChat>(`/api/chats/${id}/about`).then(setChat, (error) => {
      if (error instanceof ApiFailure && error.status < 500 && error.status !== 429) setUnknown(true);
      else setFailure(reasonOf(error));
    });
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: loads once for each chat
  useEffect(() => {
    if (id < 0) load();
  }, [id]);
  if (isUnknown) return <Unknown id={id} text={text} />;
  if (chat) return <Preview chat={chat} />;
  return (
    <main className="main center">{failure ? <Trouble text={failure} retry={load} /> : <Spinner />}</main>
  );
}
