/** Shows the list of chats with last messages and unread counts, the search, and links to new chats. */
import { type KeyboardEvent, lazy, useEffect, useRef, useState } from 'react';
import { VList, type VListHandle } from 'virtua';
import { get } from '../api.js';
import { attempt } from '../failures.js';
import { answerInvitation, chats, connected, invitations, isMuted, typing } from '../model/chats.js';
import { chatName, personName, serviceText, summaryOf } from '../names.js';
import { say } from '../notes.js';
import { go, route } from '../route.js';
import { me } from '../session.js';
import { useCell, useSignal } from '../signal.js';
import type { ChatSummary } from '../types.js';
import { shortDate, t, unreadText } from '../words.js';
import { Icon } from './icons.js';
import { Empty, Face, IconButton, Part, Spinner, Trouble } from './ui.js';

const NewChat = lazy(async () => ({ default: (await import('./new_chat.js')).NewChat }));
const FoundMessages = lazy(async () => ({ default: (await import('./search.js')).FoundMessages }));

/** Opens the chat of a username. For a person, shows a note, because people have no direct chats with each other. */
export async function openUsername(name: string): Promise<'opened' | 'person' | 'nobody'> {
  const username = name.replace(/^@/, '');
  try {
    const found = await get<{ type: string; id: number; username: string }>(
      `/api/names/${encodeURIComponent(username)}`,
    );
    if (found.type === 'bot') go(chats.byId.has(found.id) ? `chat/${found.id}` : `bot/${found.username}`);
    else if (found.type === 'user') say(t('is_person', { name: username }));
    else go(`chat/${found.id}`);
    return found.type === 'user' ? 'person' : 'opened';
  } catch {
    return 'nobody';
  }
}

function Row({ chat, chosen }: { chat: ChatSummary; chosen: boolean }) {
  const doing = useCell(typing).get(chat.id);
  const last = chat.last_message;
  const name = chatName(chat);
  const mine = last?.from?.id === me.value?.id;
  const who =
    last && chat.type === 'group' && serviceText(last) === null
      ? mine
        ? t('you')
        : personName(last.from)
      : '';
  const unread = unreadText(chat.unread_count);
  return (
    <a
      className={chosen ? 'chat-row chosen' : 'chat-row'}
      href={`#/chat/${chat.id}`}
      aria-current={chosen ? 'page' : undefined}
    >
      <Face id={chat.id} name={name} picture={chat.avatar} />
      <span className="chat-row-text">
        <span className="chat-row-top">
          <span className="chat-name">
            {chat.type === 'channel' && <Icon name="channel" size={16} />}
            {chat.type === 'group' && <Icon name="people" size={16} />}
            <bdi>{name}</bdi>
            {isMuted(chat) && (
              <span className="muted-mark">
                <Icon name="bell_off" size={14} />
                <span className="sr-only">{t('muted')}</span>
              </span>
            )}
          </span>
          {last && <time>{shortDate(last.date)}</time>}
        </span>
        <span className="chat-row-top">
          <span className="chat-last" dir="auto">
            {doing ? (
              <span className="accent">{t('typing')}</span>
            ) : (
              <>
                {who && <span className="accent">{who}: </span>}
                {last ? summaryOf(last) : t('no_messages')}
              </>
            )}
          </span>
          {unread !== '' && (
            <span className="badge">
              <span aria-hidden="true">{unread}</span>
              <span className="sr-only">{t('unread', { n: unread })}</span>
            </span>
          )}
        </span>
      </span>
    </a>
  );
}

/** Shows the chats to which the person is invited. */
function Invitations() {
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

interface SearchProps {
  text: string;
  set: (text: string) => void;
  /** The first chat that matches the search. */
  first: ChatSummary | undefined;
}

/** Filters the list. Text that matches no chat, or that begins with @, is also looked up as a username. */
function Search({ text, set, first }: SearchProps) {
  const [missing, setMissing] = useState(false);
  const open = async (event: { preventDefault: () => void }) => {
    event.preventDefault();
    const name = text.trim();
    if (name === '') return;
    const own = name.startsWith('@') ? undefined : first;
    const found = own ? 'opened' : await openUsername(name);
    if (own) go(`chat/${own.id}`);
    setMissing(found === 'nobody');
    if (found === 'opened') set('');
  };
  return (
    <search>
      <form className="search" onSubmit={(event) => void open(event)}>
        <Icon name="search" size={18} />
        <input
          type="search"
          value={text}
          placeholder={t('search')}
          aria-label={t('search')}
          aria-invalid={missing}
          autoCapitalize="none"
          spellCheck={false}
          onChange={(event) => {
            set(event.target.value);
            setMissing(false);
          }}
          onKeyDown={(event) => {
            if (event.key !== 'Escape') return;
            set('');
            setMissing(false);
          }}
        />
        {missing && (
          <p className="search-none" role="alert">
            {t('nobody_has', { name: text })}
          </p>
        )}
        {!missing && !first && text.trim() !== '' && (
          <p className="search-none">
            <button type="submit" className="button">
              <Icon name="search" size={18} /> @{text.trim().replace(/^@/, '')}
            </button>
          </p>
        )}
      </form>
    </search>
  );
}

const matches = (chat: ChatSummary, sought: string): boolean =>
  [chatName(chat), chat.username ?? ''].some((name) => name.toLocaleLowerCase().includes(sought));

/** Moves between the rows with the arrow keys, as in other messengers. */
function onArrow(event: KeyboardEvent<HTMLElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>('.chat-row')];
  const next = rows[rows.indexOf(document.activeElement as HTMLElement) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

/** How many matching chats are shown above the messages. A longer search text matches fewer chats. */
const chats_found_max = 30;

/** Shows the chats and the messages that match the search. */
function Results({ list, query }: { list: readonly ChatSummary[]; query: string }) {
  return (
    <div className="chat-rows results">
      {list.length > 0 && (
        <section aria-labelledby="found-chats">
          <h2 id="found-chats">{t('chats')}</h2>
          {list.slice(0, chats_found_max).map((chat) => (
            <Row key={chat.id} chat={chat} chosen={false} />
          ))}
        </section>
      )}
      {!query.trim().startsWith('@') && (
        <section aria-labelledby="found-messages">
          <h2 id="found-messages">{t('messages')}</h2>
          <Part>
            <FoundMessages query={query} />
          </Part>
        </section>
      )}
    </div>
  );
}

const row_px = 72;
const load_ahead_px = 20 * row_px;

export function ChatList() {
  useSignal(chats);
  const { page, id } = useCell(route);
  const state = useCell(connected);
  const [making, setMaking] = useState(false);
  const nav = useRef<HTMLElement>(null);
  const [text, setText] = useState('');
  const sought = text.trim().replace(/^@/, '').toLocaleLowerCase();
  const list = sought === '' ? chats.list : chats.list.filter((chat) => matches(chat, sought));
  const rows = useRef<VListHandle>(null);
  const onScroll = () => {
    const box = rows.current;
    if (box && box.scrollSize - box.scrollOffset - box.viewportSize < load_ahead_px) void chats.loadMore();
  };
  // Loads further pages. A match may be on a later page, and a short list may not fill the window.
  const more = sought !== '' || list.length * row_px < window.innerHeight;
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs again after each page
  useEffect(() => {
    if (more) void chats.loadMore();
  }, [more, chats.byId.size]);
  return (
    <aside className="sidebar" aria-label={t('chats')}>
      <header className="bar">
        <a className="brand" href="#/" aria-label="Petrel">
          <img src="/app/icon.svg" alt="" width="30" height="30" />
        </a>
        <h1 className="bar-title" aria-live="polite">
          {state === 'open' ? t('chats') : t('connecting')}
        </h1>
        <IconButton icon="plus" label={t('new_chat')} onClick={() => setMaking(true)} />
        <a className="icon-button" href="#/bots" aria-label={t('my_bots')} title={t('my_bots')}>
          <Icon name="bot" />
        </a>
        <a className="icon-button" href="#/settings" aria-label={t('settings')} title={t('settings')}>
          <Icon name="gear" />
        </a>
      </header>
      <Search text={text} set={setText} first={list[0]} />
      <Invitations />
      {chats.failed !== '' && <Trouble text={chats.failed} retry={() => void chats.load()} />}
      {!chats.loaded && chats.failed === '' && (
        <div className="center">
          <Spinner />
        </div>
      )}
      {chats.loaded && sought === '' && list.length === 0 && <Empty icon="chat" text={t('no_chats')} />}
      <nav aria-label={t('chats')} ref={nav} onKeyDown={onArrow} className="grow">
        {sought === '' ? (
          <VList className="chat-rows" data={list} itemSize={row_px} ref={rows} onScroll={onScroll}>
            {(chat) => <Row key={chat.id} chat={chat} chosen={page === 'chat' && id === String(chat.id)} />}
          </VList>
        ) : (
          <Results list={list} query={text} />
        )}
      </nav>
      {making && (
        <Part>
          <NewChat close={() => setMaking(false)} />
        </Part>
      )}
    </aside>
  );
}
