/** Shows invite links and join requests: the page that a link opens, and the sections in the details of a chat. */
import { useEffect, useState } from 'react';
import { call } from '../api.js';
import { copyText } from '../clipboard.js';
import { reasonOf } from '../failures.js';
import { chats } from '../model/chats.js';
import { personName } from '../names.js';
import { say } from '../notes.js';
import { usePages } from '../pages.js';
import { go } from '../route.js';
import type { InviteLinkPreview, JoinedByLink, JoinRequest, ListedInviteLink } from '../types.js';
import { t } from '../words.js';
import '../words/later.js';
import { Confirm, Face, Field, IconButton, Spinner, Trouble } from './ui.js';

/**
 * Shows the chat to which an invite link leads. The link's code is sent in the body of the call, because proxies log
 * paths.
 */
export function JoinPage({ code }: { code: string }) {
  const [found, setFound] = useState<InviteLinkPreview | null>(null);
  const [failure, setFailure] = useState('');
  const [busy, setBusy] = useState(false);
  const load = () => {
    setFailure('');
    return call<InviteLinkPreview>('POST', '/api/invite_links/preview', { link: code }).then(
      setFound,
      (error) => setFailure(reasonOf(error)),
    );
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: loads once for each code
  useEffect(() => void load(), [code]);
  const open = async (chat: number) => {
    await chats.refresh(chat);
    go(`chat/${chat}`);
  };
  const act = async (change: () => Promise<unknown>) => {
    setBusy(true);
    try {
      await change();
    } catch (error) {
      setFailure(reasonOf(error));
    }
    setBusy(false);
  };
  const join = async () => {
    const { chat_id } = await call<JoinedByLink>('POST', '/api/invite_links/join', { link: code });
    await (chat_id === undefined ? load() : open(chat_id));
  };
  const withdraw = async () => {
    await call('POST', '/api/invite_links/withdraw', { link: code });
    await load();
  };
  const action = () => {
    if (found?.chat_id !== undefined) return t('open_chat');
    return t(found?.creates_join_request ? 'ask_to_join' : 'join');
  };
  return (
    <main className="main center">
      <div className="card stack center-text">
        {found && (
          <>
            <Face id={0} name={found.title} picture={found.avatar} size={112} />
            <h2>
              <bdi>{found.title}</bdi>
            </h2>
            <p className="muted">
              {t(found.type)} · {t('members_count', { n: found.member_count })}
            </p>
            {found.description && (
              <p className="pre-line" dir="auto">
                {found.description}
              </p>
            )}
          </>
        )}
        {failure && <Trouble text={failure} />}
        {!found && !failure && <Spinner />}
        {found?.requested && (
          <>
            <p role="status">{t('asked_to_join')}</p>
            <button type="button" className="button" disabled={busy} onClick={() => void act(withdraw)}>
              {t('withdraw_request')}
            </button>
          </>
        )}
        {found && !found.requested && !failure && (
          <button
            type="button"
            className="button primary"
            disabled={busy}
            onClick={() => {
              const { chat_id } = found;
              void (chat_id === undefined ? act(join) : open(chat_id));
            }}
          >
            {action()}
          </button>
        )}
        <button type="button" className="button" onClick={() => go('')}>
          {t('back')}
        </button>
      </div>
    </main>
  );
}

/** Lists, creates and revokes a chat's invite links. Only for administrators who may invite. */
export function InviteLinks({ chat }: { chat: number }) {
  const path = `/api/chats/${chat}/invite_links`;
  const { items, cursor, failure, load } = usePages<ListedInviteLink>(path);
  const [name, setName] = useState('');
  const [asking, setAsking] = useState(false);
  const [revoked, setRevoked] = useState<ListedInviteLink | null>(null);
  const act = async (change: () => Promise<unknown>) => {
    try {
      await change();
      await load();
    } catch (error) {
      say(reasonOf(error));
    }
  };
  const create = () =>
    act(async () => {
      await call('POST', path, { name, creates_join_request: asking });
      setName('');
    });
  const copy = (link: string) =>
    copyText(link).then(
      () => say(t('copied')),
      (error) => say(reasonOf(error)),
    );
  return (
    <section>
      <h4>{t('invite_links')}</h4>
      <ul className="people">
        {items?.map((link) => (
          <li key={link.id}>
            <span className="grow">
              <bdi>{link.name ?? link.invite_link.replace(/^https?:\/\//, '')}</bdi>
              <small>
                {t('members_count', { n: link.member_count })}
                {link.creates_join_request ? ` · ${t('approve_each')}` : ''}
              </small>
            </span>
            <IconButton icon="copy" label={t('copy')} onClick={() => void copy(link.invite_link)} />
            <IconButton icon="close" label={t('revoke')} onClick={() => setRevoked(link)} />
          </li>
        ))}
      </ul>
      {failure && <Trouble text={failure} retry={() => void load(cursor)} />}
      {cursor && (
        <button type="button" className="button" onClick={() => void load(cursor)}>
          {t('more')}
        </button>
      )}
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void create();
        }}
      >
        <Field label={t('name')} value={name} set={setName} max={32} />
        <label className="check">
          <input type="checkbox" checked={asking} onChange={(event) => setAsking(event.target.checked)} />
          {t('approve_each')}
        </label>
        <button type="submit" className="button">
          {t('create')}
        </button>
      </form>
      {revoked && (
        <Confirm
          title={t('revoke')}
          text={t('revoke_hint')}
          action={t('revoke')}
          danger
          close={() => setRevoked(null)}
          act={() => void act(() => call('DELETE', `${path}/${revoked.id}`))}
        />
      )}
    </section>
  );
}

/** Lists a chat's join requests, with buttons to accept and decline them. Shows nothing if there are none. */
export function JoinRequests({ chat, accepted }: { chat: number; accepted: () => void }) {
  const path = `/api/chats/${chat}/join_requests`;
  const { items, cursor, failure, load } = usePages<JoinRequest>(path);
  const decide = async (user: number, answer: 'approve' | 'decline') => {
    try {
      await call('POST', `${path}/${user}/${answer}`);
      if (answer === 'approve') accepted();
    } catch (error) {
      say(reasonOf(error));
    }
    await load();
  };
  if (items?.length === 0 && !failure) return null;
  return (
    <section>
      <h4>{t('join_requests')}</h4>
      <ul className="people">
        {items?.map(({ user }) => (
          <li key={user.id}>
            <Face id={user.id} name={personName(user)} size={36} />
            <span className="grow">
              <bdi>{personName(user)}</bdi>
            </span>
            <button type="button" className="button" onClick={() => void decide(user.id, 'decline')}>
              {t('decline')}
            </button>
            <button type="button" className="button primary" onClick={() => void decide(user.id, 'approve')}>
              {t('accept')}
            </button>
          </li>
        ))}
      </ul>
      {failure && <Trouble text={failure} retry={() => void load(cursor)} />}
      {cursor && (
        <button type="button" className="button" onClick={() => void load(cursor)}>
          {t('more')}
        </button>
      )}
    </section>
  );
}
