/** Shows the list of chats with their last messages and unread counts, the search field, and links for new chats. */
import {
  type KeyboardEvent,
  lazy,
  useCallback,
  useEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from 'react';
import { VList, type VListHandle } from 'virtua';
import { get } from '../api.js';
import { chats, connected, invitations } from '../model/chats.js';
import { chatName } from '../names.js';
import { go, route } from '../route.js';
import { me } from '../session.js';
import { useCell, useSignal } from '../signal.js';
import type { ChatSummary } from '../types.js';
import { t } from '../words.js';
import { ArchiveRow, type OpenMenu, placesOf, Row, takeFocus } from './chat_row.js';
import { Icon } from './icons.js';
import { Empty, IconButton, Menu, Part, Spinner, Trouble } from './ui.js';

const Invitations = lazy(() => import('./invitations.js'));
const NewChat = lazy(async () => ({ default: (await import('./new_chat.js')).NewChat }));
// If the code of the suggestions cannot be loaded, nothing is suggested.
const Suggestions = lazy(async () => {
  const code = await import('./suggestions.js').catch(() => null);
  return { default: code?.Suggestions ?? (() => null) };
});
const FoundMessages = lazy(async () => ({ default: (await import('./search.js')).FoundMessages }));

/** Opens the chat that has a username, or the page of the person who has it. */
export async function openUsername(name: string): Promise<'opened' | 'nobody'> {
  const username = name.replace(/^@/, '');
  try {
    const found = await get<{ type: string; id: number; username: string }>(
      `/api/names/${encodeURIComponent(username)}`,
    );
    if (found.type === 'bot') go(chats.byId.has(found.id) ? `chat/${found.id}` : `bot/${found.username}`);
    else if (found.type === 'user') go(found.id === me.value?.id ? 'settings' : `person/${found.username}`);
    else go(`chat/${found.id}`);
    return 'opened';
  } catch {
    return 'nobody';
  }
}

interface SearchProps {
  text: string;
  set: (text: string) => void;
  /** The first chat that matches the search text. */
  first: ChatSummary | undefined;
}

/**
 * Shows the search field, which filters the list. If the text matches no chat or begins with @, submitting it opens the
 * chat or person with this username.
 */
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

/** Moves the focus between the rows with the arrow keys, as other messengers do. Escape closes the archive. */
function onKey(event: KeyboardEvent<HTMLElement>): void {
  if (event.key === 'Escape' && route.value.page === 'archive') go('');
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const rows = [...event.currentTarget.querySelectorAll<HTMLElement>('.chat-row')];
  const at = document.activeElement;
  const next = rows[rows.findIndex((row) => row === at || row.nextElementSibling === at) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

/**
 * The maximum number of matching chats that are shown above the matching messages. To find others, the person types a
 * longer text.
 */
const chats_found_max = 30;

interface ResultsProps {
  list: readonly ChatSummary[];
  query: string;
  openMenu: OpenMenu;
}

/** Shows the chats and the messages that match the search. */
function Results({ list, query, openMenu }: ResultsProps) {
  return (
    <div className="chat-rows results">
      {list.length > 0 && (
        <section aria-labelledby="found-chats">
          <h2 id="found-chats">{t('chats')}</h2>
          {list.slice(0, chats_found_max).map((chat) => (
            <Row key={chat.id} chat={chat} chosen={false} openMenu={openMenu} />
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

/** Shows the title of the list and the links to other pages. In the archive, shows a link back to the list of chats. */
function Bar({ inArchive, make }: { inArchive: boolean; make: () => void }) {
  const state = useCell(connected);
  const back = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (inArchive) takeFocus(back.current);
  }, [inArchive]);
  return (
    <div className="bar">
      {inArchive ? (
        <a className="icon-button" href="#/" aria-label={t('back')} title={t('back')} ref={back}>
          <Icon name="back" />
        </a>
      ) : (
        <a className="brand" href="#/" aria-label="Petrel">
          <img src="/app/icon.svg" alt="" width="30" height="30" />
        </a>
      )}
      <h2 className="bar-title" aria-live="polite">
        {state === 'open' ? t(inArchive ? 'archive' : 'chats') : t('connecting')}
      </h2>
      <IconButton icon="plus" label={t('new_chat')} onClick={make} />
      <a className="icon-button" href="#/bots" aria-label={t('my_bots')} title={t('my_bots')}>
        <Icon name="bot" />
      </a>
      <a className="icon-button" href="#/settings" aria-label={t('settings')} title={t('settings')}>
        <Icon name="gear" />
      </a>
    </div>
  );
}

/**
 * Restores the focus after the person has pinned or archived a chat. Focuses the chat. If the chat is no longer in the
 * list, focuses the next chat, the previous chat or the first link, in this order.
 */
function focusNear({ id }: ChatSummary, list: readonly ChatSummary[]): void {
  const at = list.findIndex((chat) => chat.id === id);
  const links = [id, list[at + 1]?.id, list[at - 1]?.id].map((one) => `nav .chat-row[href="#/chat/${one}"]`);
  const found = [...links, 'nav .chat-row', '.bar a'].map((link) =>
    document.querySelector<HTMLElement>(`.sidebar ${link}`),
  );
  takeFocus(found.find((link) => link !== null) ?? null);
}

const row_px = 72;
const load_ahead_px = 20 * row_px;

interface RowsProps {
  list: readonly ChatSummary[];
  inArchive: boolean;
  openMenu: OpenMenu;
}

/** Shows the rows of the chats or of the archive. Loads further pages while the person scrolls. */
function Rows({ list, inArchive, openMenu }: RowsProps) {
  const { page, id } = useCell(route);
  const box = useRef<VListHandle>(null);
  const { archived } = chats;
  // Adds a row above the chats. This row leads to the archive.
  const rows = inArchive || archived.length === 0 ? list : [null, ...list];
  const [wasInArchive, setWasInArchive] = useState(false);
  useEffect(() => {
    if (inArchive) setWasInArchive(true);
  }, [inArchive]);
  const onScroll = () => {
    const at = box.current;
    if (at && at.scrollSize - at.scrollOffset - at.viewportSize < load_ahead_px)
      void chats.loadMore(inArchive);
  };
  return (
    <VList
      className="chat-rows"
      data={rows}
      itemSize={row_px}
      ref={box}
      onScroll={onScroll}
      key={String(inArchive)}
    >
      {(chat) =>
        chat === null ? (
          <ArchiveRow key="archive" archived={archived} focus={wasInArchive} />
        ) : (
          <Row
            key={chat.id}
            chat={chat}
            chosen={page === 'chat' && id === String(chat.id)}
            openMenu={openMenu}
          />
        )
      }
    </VList>
  );
}

/** Returns whether the list shows the archive. Opening a page next to the list does not change this. */
function useInArchive(): boolean {
  const { page } = useCell(route);
  const [inArchive, setInArchive] = useState(page === 'archive');
  useEffect(() => {
    if (page === 'archive' || page === '') setInArchive(page === 'archive');
  }, [page]);
  return inArchive;
}

const narrow = matchMedia('(max-width: 760px)');

/** Returns whether the window is narrow and no page is open. The list then fills the whole window. */
function useAlone(): boolean {
  const { page } = useCell(route);
  const isNarrow = useSyncExternalStore(
    (changed) => {
      narrow.addEventListener('change', changed);
      return () => narrow.removeEventListener('change', changed);
    },
    () => narrow.matches,
  );
  return isNarrow && (page === '' || page === 'archive');
}

/** Suggestions are shown to people with fewer chats than this. */
const few_chats = 5;

export function ChatList() {
  useSignal(chats);
  const invited = useCell(invitations);
  const inArchive = useInArchive();
  const isAlone = useAlone();
  const [making, setMaking] = useState(false);
  const [menu, setMenu] = useState<{ chat: ChatSummary; at: { x: number; y: number } } | null>(null);
  const openMenu = useCallback<OpenMenu>((chat, at) => setMenu({ chat, at }), []);
  const [text, setText] = useState('');
  const sought = text.trim().replace(/^@/, '').toLocaleLowerCase();
  const shown = inArchive ? chats.archived : chats.list;
  const list = sought === '' ? shown : chats.all.filter((chat) => matches(chat, sought));
  // Loads further pages, because a matching chat may be on a later page, or because the list may not fill the window.
  const more = sought !== '' || list.length * row_px < window.innerHeight;
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs again after each page that was loaded
  useEffect(() => {
    if (more && sought !== '') chats.loadAll();
    else if (more) void chats.loadMore(inArchive);
  }, [more, inArchive, chats.byId.size]);
  return (
    // biome-ignore lint/a11y/useAriaPropsSupportedByRole: both roles accept a label
    <div className="sidebar" role={isAlone ? 'main' : 'complementary'} aria-label={t('chats')}>
      <Bar inArchive={inArchive} make={() => setMaking(true)} />
      <Search text={text} set={setText} first={list[0]} />
      {!inArchive && invited.length > 0 && (
        <Part>
          <Invitations />
        </Part>
      )}
      {chats.failed !== '' && <Trouble text={chats.failed} retry={() => void chats.load()} />}
      {!chats.loaded && chats.failed === '' && (
        <div className="center">
          <Spinner />
        </div>
      )}
      {chats.loaded && sought === '' && list.length === 0 && (inArchive || chats.archived.length === 0) && (
        <Empty icon={inArchive ? 'archive' : 'chat'} text={t(inArchive ? 'archive_empty' : 'no_chats')} />
      )}
      <nav aria-label={t(inArchive ? 'archive' : 'chats')} onKeyDown={onKey} className="grow">
        {sought === '' ? (
          <Rows list={list} inArchive={inArchive} openMenu={openMenu} />
        ) : (
          <Results list={list} query={text} openMenu={openMenu} />
        )}
      </nav>
      {chats.loaded && sought === '' && !inArchive && chats.all.length < few_chats && (
        <Part>
          <Suggestions />
        </Part>
      )}
      {menu && (
        <Menu
          at={menu.at}
          label={t('actions')}
          // Moves the focus in the next frame, after the changed list has been drawn.
          items={placesOf(menu.chat, () => requestAnimationFrame(() => focusNear(menu.chat, list)))}
          close={() => setMenu(null)}
        />
      )}
      {making && (
        <Part>
          <NewChat close={() => setMaking(false)} />
        </Part>
      )}
    </div>
  );
}
