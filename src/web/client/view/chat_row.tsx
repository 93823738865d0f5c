/** Shows a row of the list of chats, and the row's menu. */

import { type MouseEvent, memo, type ReactNode, useEffect, useRef } from 'react';
import { isMuted, setPlace } from '../model/chats.js';
import { doings, doingText } from '../model/doings.js';
import { useAuthor } from '../model/people.js';
import { chatName, personName, serviceText, summaryOf } from '../names.js';
import { me } from '../session.js';
import { useCell } from '../signal.js';
import type { ChatSummary } from '../types.js';
import { language, shortDate, t, unreadText } from '../words.js';
import { Icon } from './icons.js';
import { Face, type MenuItem, useLongPress } from './ui.js';

interface Position {
  x: number;
  y: number;
}
export type OpenMenu = (chat: ChatSummary, at: Position) => void;

/**
 * Returns the items of a chat's menu that pin or archive the chat, or undo this. Each item calls `moved` after the
 * change.
 */
export function placesOf({ id, list_pin, archived }: ChatSummary, moved: () => void): MenuItem[] {
  const set = (place: 'list_pin' | 'archive', on: boolean) => () => void setPlace(id, place, on).then(moved);
  if (archived) return [{ icon: 'unarchive', label: t('from_archive'), act: set('archive', false) }];
  return [
    list_pin
      ? { icon: 'unpin', label: t('unpin'), act: set('list_pin', false) }
      : { icon: 'pin', label: t('pin'), act: set('list_pin', true) },
    { icon: 'archive', label: t('to_archive'), act: set('archive', true) },
  ];
}

/** Shows the number of unread messages, and an icon if the chat is pinned. */
function Marks({ unread, isPinned }: { unread: number | undefined; isPinned: boolean }) {
  const text = unreadText(unread);
  if (text === '' && !isPinned) return null;
  return (
    <span className="chat-row-marks">
      {isPinned && (
        <span className="muted-mark">
          <Icon name="pin" size={16} />
          <span className="sr-only">{t('pinned_chat')}</span>
        </span>
      )}
      {text !== '' && (
        <span className="badge">
          <span aria-hidden="true">{text}</span>
          <span className="sr-only">{t('unread', { n: text })}</span>
        </span>
      )}
    </span>
  );
}

/** Shows a link to the chat. A right click, a long press or the button in the row opens the menu. */
function RowBox({ chat, chosen, openMenu, children }: RowProps & { children: ReactNode }) {
  const press = useLongPress((at) => openMenu(chat, at));
  const onContextMenu = (event: MouseEvent<HTMLElement>) => {
    event.preventDefault();
    openMenu(chat, { x: event.clientX, y: event.clientY });
  };
  return (
    <div className="chat-row-box">
      <a
        className={chosen ? 'chat-row chosen' : 'chat-row'}
        href={`#/chat/${chat.id}`}
        aria-current={chosen ? 'page' : undefined}
        onContextMenu={onContextMenu}
        {...press}
      >
        {children}
      </a>
      <button
        type="button"
        className="icon-button chat-row-more"
        aria-label={t('actions')}
        aria-haspopup="menu"
        onClick={(event) => {
          const { left, bottom } = event.currentTarget.getBoundingClientRect();
          openMenu(chat, { x: left, y: bottom });
        }}
      >
        <Icon name="more" size={18} />
      </button>
    </div>
  );
}

interface RowProps {
  chat: ChatSummary;
  chosen: boolean;
  openMenu: OpenMenu;
}

export function Row({ chat, chosen, openMenu }: RowProps) {
  const doing = doingText(useCell(doings).get(chat.id), chat.type === 'group');
  const date = chat.last_message ? shortDate(chat.last_message.date) : '';
  return (
    <DrawnRow
      chat={chat}
      chosen={chosen}
      openMenu={openMenu}
      doing={doing}
      date={date}
      muted={isMuted(chat)}
    />
  );
}

interface DrawnRowProps extends RowProps {
  doing: string;
  date: string;
  muted: boolean;
}

/**
 * Draws a row only if its properties have changed. Otherwise all rows would be drawn after each event and each change
 * of the list's size.
 */
const DrawnRow = memo(function DrawnRow({ chat, chosen, openMenu, doing, date, muted }: DrawnRowProps) {
  useCell(language);
  const last = chat.last_message;
  const name = chatName(chat);
  const mine = last?.from?.id === me.value?.id;
  const { user: author } = useAuthor(last?.from);
  const who =
    last && chat.type === 'group' && serviceText(last) === null ? (mine ? t('you') : personName(author)) : '';
  return (
    <RowBox chat={chat} chosen={chosen} openMenu={openMenu}>
      <Face id={chat.user_id ?? chat.id} name={name} picture={chat.avatar} />
      <span className="chat-row-text">
        <span className="chat-row-top">
          <span className="chat-name">
            {chat.type === 'channel' && <Icon name="channel" size={16} />}
            {chat.type === 'group' && <Icon name="people" size={16} />}
            <bdi>{name}</bdi>
            {muted && (
              <span className="muted-mark">
                <Icon name="bell_off" size={14} />
                <span className="sr-only">{t('muted')}</span>
              </span>
            )}
          </span>
          {date && <time>{date}</time>}
        </span>
        <span className="chat-row-top">
          <span className="chat-last" dir="auto">
            {doing ? (
              <span className="accent">{doing}</span>
            ) : (
              <>
                {who && <span className="accent">{who}: </span>}
                {last ? summaryOf(last) : t('no_messages')}
              </>
            )}
          </span>
          <Marks unread={chat.unread_count} isPinned={chat.list_pin !== undefined} />
        </span>
      </span>
    </RowBox>
  );
});

/**
 * Focuses a link, unless another element has the focus. Tries again in the next frames, because the list hides a new
 * row until it has measured the row.
 */
export function takeFocus(link: HTMLElement | null, frames = 30): void {
  if (!link?.isConnected || document.activeElement !== document.body) return;
  link.focus();
  if (document.activeElement !== link && frames > 0) requestAnimationFrame(() => takeFocus(link, frames - 1));
}

/** Shows a link to the archive, with the names of archived chats and the total number of their unread messages. */
export function ArchiveRow({ archived, focus }: { archived: readonly ChatSummary[]; focus: boolean }) {
  const link = useRef<HTMLAnchorElement>(null);
  // Runs only when the row appears.
  // biome-ignore lint/correctness/useExhaustiveDependencies: see above
  useEffect(() => {
    if (focus) takeFocus(link.current);
  }, []);
  const unread = archived.reduce((sum, { unread_count = 0 }) => sum + unread_count, 0);
  return (
    <a className="chat-row" href="#/archive" ref={link}>
      <span className="face archive-face">
        <Icon name="archive" size={24} />
      </span>
      <span className="chat-row-text">
        <span className="chat-row-top">
          <span className="chat-name">{t('archive')}</span>
        </span>
        <span className="chat-row-top">
          <span className="chat-last">{archived.slice(0, named_max).map(chatName).join(', ')}</span>
          <Marks unread={unread} isPinned={false} />
        </span>
      </span>
    </a>
  );
}

/** The maximum number of archived chats that this row names. */
const named_max = 10;
