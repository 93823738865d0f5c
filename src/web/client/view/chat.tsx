/** Shows a chat: its header, the pinned message, the messages, and the composer. */
import { type ComponentProps, lazy, useEffect, useRef, useState } from 'react';
import { call } from '../api.js';
import { copyText } from '../clipboard.js';
import { attempt } from '../failures.js';
import { copyPostLink } from '../links.js';
import { chats, connected, historyOf } from '../model/chats.js';
import { doings, doingText } from '../model/doings.js';
import { areDraftsRestored } from '../model/drafts.js';
import type { History } from '../model/history.js';
import { posts } from '../model/posts.js';
import { chatName, mayWriteIn, profiles, summaryOf } from '../names.js';
import { say } from '../notes.js';
import { route } from '../route.js';
import { me } from '../session.js';
import { useCell, useSignal } from '../signal.js';
import type { ChatSummary, Message } from '../types.js';
import { t } from '../words.js';
import type { AlbumItem, OnOpen } from './album.js';
import { Composer } from './composer.js';
import { Icon } from './icons.js';
import { type MessageActions, itemsOf as mediaOf } from './message.js';
import { MessageList } from './message_list.js';
import { useReplyKeys } from './reply_keyboard.js';
import { Confirm, Face, IconButton, Menu, type MenuItem, Part, Spinner } from './ui.js';

// If the code of the drop zone cannot be loaded, no files can be dropped.
const DropZone = lazy(async () => {
  const code = await import('./drop_zone.js').catch(() => null);
  return { default: code?.DropZone ?? (() => null) };
});
const LoadedSearch = lazy(async () => ({ default: (await import('./search.js')).ChatSearch }));
const ForwardDialog = lazy(async () => ({ default: (await import('./forward.js')).ForwardDialog }));
const ChatInfo = lazy(async () => ({ default: (await import('./chat_info.js')).ChatInfo }));
const Outside = lazy(async () => ({ default: (await import('./outside.js')).Outside }));
const ClosedPerson = lazy(async () => ({ default: (await import('./person.js')).ClosedPerson }));
const PostsPage = lazy(async () => ({ default: (await import('./posts.js')).PostsPage }));
const Scheduled = lazy(() => import('./scheduled.js'));
const Viewer = lazy(() => import('./viewer.js'));

function subtitleOf(chat: ChatSummary): string {
  if (chat.type === 'private') return t('bot');
  if (chat.username && chat.type === 'person') return `@${chat.username}`;
  return chat.member_count === undefined ? t(chat.type) : t('members_count', { n: chat.member_count });
}

interface HeaderProps {
  chat: ChatSummary;
  tab: string;
  info: () => void;
  isSearching: boolean;
  search: () => void;
}

function Header({ chat, tab, info, isSearching, search }: HeaderProps) {
  const doing = doingText(useCell(doings).get(chat.id), chat.type === 'group');
  const name = chatName(chat);
  return (
    <header className="bar chat-bar">
      <a className="icon-button only-narrow" href={chat.archived ? '#/archive' : '#/'} aria-label={t('back')}>
        <Icon name="back" />
      </a>
      <button type="button" className="chat-title" onClick={info}>
        <Face id={chat.user_id ?? chat.id} name={name} picture={chat.avatar} size={42} />
        <span>
          <strong>
            <bdi>{name}</bdi>
          </strong>
          <small className={doing ? 'accent' : ''} aria-live="polite">
            {doing || subtitleOf(chat)}
          </small>
        </span>
      </button>
      {chat.type === 'channel' && (
        <nav className="tabs" aria-label={name}>
          <a href={`#/chat/${chat.id}`} aria-current={tab === '' ? 'page' : undefined}>
            {t('chat')}
          </a>
          <a href={`#/chat/${chat.id}/posts`} aria-current={tab === 'posts' ? 'page' : undefined}>
            {t('posts')}
          </a>
        </nav>
      )}
      {tab !== 'posts' && (
        <IconButton icon="search" label={t('search_in_chat')} expanded={isSearching} onClick={search} />
      )}
      <IconButton icon="info" label={t('about', { name })} onClick={info} />
    </header>
  );
}

function PinnedBar({ chat, jump }: { chat: ChatSummary; jump: (id: number) => void }) {
  const pinned = chat.pinned_message;
  if (!pinned) return null;
  return (
    <div className="pinned">
      <button type="button" className="pinned-jump" onClick={() => jump(pinned.message_id)}>
        <Icon name="pin" size={18} />
        <span>
          <strong>{t('pinned_message')}</strong>
          <span>{pinned.date ? summaryOf(pinned) : t('message')}</span>
        </span>
      </button>
      {chat.can_pin && <IconButton icon="close" label={t('unpin')} onClick={() => unpin(chat.id)} />}
    </div>
  );
}

/** For how many seconds after it was sent a message can be edited and deleted. */
const change_age_s_max = 48 * 3_600;

const unpin = (chat: number) => attempt(() => call('DELETE', `/api/chats/${chat}/pin`));

/** The menu or dialog that is open over the chat. At most one is open. */
type Shown =
  | { kind: 'menu'; message: Message; at: { x: number; y: number } }
  | { kind: 'deletion'; messages: readonly Message[] }
  | { kind: 'forward'; messages: readonly Message[] }
  | { kind: 'media'; items: readonly AlbumItem[]; first: AlbumItem }
  | { kind: 'info' }
  | { kind: 'scheduled' };

/** The message that the person is replying to or editing. */
interface Subject {
  kind: 'reply' | 'edit';
  message: Message;
}

interface MenuContext {
  chat: ChatSummary;
  mayWrite: boolean;
  show: (shown: Shown) => void;
  begin: (subject: Subject) => void;
}

/**
 * Returns the menu items for a message. For an album, this is the message with the caption. Reply, edit and copy apply
 * to this message. Pin applies to the first message of the album. Forward and delete apply to the whole album.
 */
function itemsOf(message: Message, { chat, mayWrite, show, begin }: MenuContext): MenuItem[] {
  const mine = message.from?.id === me.value?.id;
  const words = message.text ?? message.caption;
  const items: MenuItem[] = [];
  if (mayWrite && chat.type !== 'channel')
    items.push({ icon: 'reply', label: t('reply'), act: () => begin({ kind: 'reply', message }) });
  const messages = historyOf(chat.id).together(message);
  if (!messages.some((one) => one.has_protected_content))
    items.push({ icon: 'forward', label: t('forward'), act: () => show({ kind: 'forward', messages }) });
  if (words) items.push({ icon: 'copy', label: t('copy_text'), act: () => attempt(() => copyText(words)) });
  const ids = messages.map((one) => one.message_id);
  const post = chat.type === 'channel' ? posts.find(chat.id, ids) : undefined;
  if (post) items.push({ icon: 'link', label: t('copy_link'), act: () => void copyPostLink(post) });
  const pin = () => attempt(() => call('POST', `/api/chats/${chat.id}/pin`, { message_id: ids[0] }));
  if (chat.can_pin)
    items.push(
      ids.includes(chat.pinned_message?.message_id ?? 0)
        ? { icon: 'pin', label: t('unpin'), act: () => unpin(chat.id) }
        : { icon: 'pin', label: t('pin'), act: pin },
    );
  const young = Date.now() / 1_000 - message.date < change_age_s_max;
  if (mine && words !== undefined && young && !message.forward_origin && !message.via_bot)
    items.push({ icon: 'edit', label: t('edit'), act: () => begin({ kind: 'edit', message }) });
  if (young && (mine || chat.can_delete))
    items.push({
      icon: 'trash',
      label: t('delete'),
      act: () => show({ kind: 'deletion', messages }),
      danger: true,
    });
  return items;
}

function Over({ shown, menu, close }: { shown: Shown; menu: MenuContext; close: () => void }) {
  const { chat } = menu;
  switch (shown.kind) {
    case 'menu':
      return <Menu at={shown.at} label={t('actions')} items={itemsOf(shown.message, menu)} close={close} />;
    case 'deletion': {
      const remove = async () => {
        for (const { message_id } of shown.messages) {
          await call('DELETE', `/api/chats/${chat.id}/messages/${message_id}`);
          historyOf(chat.id).remove(message_id);
        }
      };
      return (
        <Confirm
          title={t('delete_message')}
          text={t('delete_message_hint')}
          action={t('delete')}
          danger
          close={close}
          act={() => void attempt(remove)}
        />
      );
    }
    case 'forward':
      return (
        <Part>
          <ForwardDialog messages={shown.messages} from={chat.id} close={close} />
        </Part>
      );
    case 'media':
      return (
        <Part>
          <Viewer items={shown.items} first={shown.first} close={close} />
        </Part>
      );
    case 'scheduled':
      return (
        <Part>
          <Scheduled chat={chat.id} close={close} />
        </Part>
      );
    case 'info':
      return (
        <Part>
          <ChatInfo chat={chat} close={close} />
        </Part>
      );
  }
}

export function ChatView({ id, tab }: { id: number; tab: string }) {
  useSignal(chats);
  const state = useCell(connected);
  const isReady = useCell(areDraftsRestored);
  const chat = chats.byId.get(id);
  const [failure, setFailure] = useState('');
  const isMissing = !chat;
  useEffect(() => {
    setFailure('');
    if (isMissing)
      void chats.refresh(id).then(() => {
        if (!chats.byId.has(id)) setFailure(t('chat_missing'));
      });
  }, [id, isMissing]);
  // Loads the messages only after the stream has opened. Otherwise messages that arrive just before the stream opens
  // would be missing.
  if (!chat || state === 'connecting' || !isReady)
    return failure ? (
      <Outside id={id} text={failure} />
    ) : (
      <main className="main center">
        <Spinner />
      </main>
    );
  return <OpenChat key={id} chat={chat} tab={tab} />;
}

/**
 * Scrolls to the message that the URL names. Then removes the message's id from the URL, so that the same link works
 * again.
 */
function useLinkedMessage(chat: number, tab: string, history: History, jump: (id: number) => Promise<void>) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs once for each link
  useEffect(() => {
    if (!/^\d{1,15}$/.test(tab)) return;
    void history.idle().then(async () => {
      await jump(Number(tab));
      const { page, id } = route.value;
      if (page === 'chat' && id === String(chat)) location.replace(`#/chat/${chat}`);
    });
  }, [tab]);
}

/** Returns the message to which the list scrolls, and a function that loads a message and scrolls to it. */
function useJump(history: History) {
  const [target, setTarget] = useState<{ id: number; n: number } | null>(null);
  const jump = async (message: number) => {
    if (await history.show(message)) setTarget((before) => ({ id: message, n: (before?.n ?? 0) + 1 }));
    else say(t('message_gone'));
  };
  return { target, jump };
}

/** Returns the newest text that the signed-in person sent, as the message to edit. */
function lastOwnOf({ messages }: History): Subject | null {
  const mine = messages.findLast(({ from, via_bot, text }) => !via_bot && from?.id === me.value?.id && text);
  return mine ? { kind: 'edit', message: mine } : null;
}

const ChatSearch = (props: ComponentProps<typeof LoadedSearch>) => (
  <Part>
    <LoadedSearch {...props} />
  </Part>
);

/** Shows why the person cannot write in the chat. */
function Closed({ chat }: { chat: ChatSummary }) {
  if (chat.type !== 'person')
    return <p className="closed">{t(chat.type === 'channel' ? 'only_admins_post' : 'cant_write')}</p>;
  return (
    <Part>
      <ClosedPerson chat={chat} />
    </Part>
  );
}

function OpenChat({ chat, tab }: { chat: ChatSummary; tab: string }) {
  useSignal(profiles);
  const [shown, show] = useState<Shown | null>(null);
  const [subject, begin] = useState<Subject | null>(null);
  const [bottom, setBottom] = useState(0);
  const [isSearching, setSearching] = useState(false);
  const history = historyOf(chat.id);
  const profile = chat.type === 'private' ? profiles.read(chat.username) : undefined;
  const mayWrite = mayWriteIn(chat) && profile?.can_write !== false;
  const open: OnOpen = (first, items = mediaOf(history.messages)) => show({ kind: 'media', items, first });
  const toBottom = () => setBottom((before) => before + 1);
  const { target, jump } = useJump(history);
  useLinkedMessage(chat.id, tab, history, jump);
  const { keys, asks } = useReplyKeys(chat, history, toBottom);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a message asks once for a reply
  useEffect(() => {
    if (asks && subject?.kind !== 'edit') begin({ kind: 'reply', message: asks });
  }, [asks?.message_id]);
  const actions: MessageActions = {
    menu: (message, at) => show({ kind: 'menu', message, at }),
    jump: (message) => void jump(message),
    open,
    command(text) {
      history.send({ text });
      toBottom();
    },
    recall(outgoing) {
      const recalled = history.recall(outgoing);
      if (recalled) begin(recalled.replyTo ? { kind: 'reply', message: recalled.replyTo } : null);
    },
  };
  const main = useRef<HTMLElement>(null);
  const attaches = mayWrite && tab !== 'posts' && subject?.kind !== 'edit';
  return (
    <main className="main" ref={main}>
      <Header
        chat={chat}
        tab={tab}
        info={() => show({ kind: 'info' })}
        isSearching={isSearching}
        search={() => setSearching(!isSearching)}
      />
      {tab === 'posts' && (
        <Part>
          <PostsPage chat={chat} open={open} />
        </Part>
      )}
      {tab !== 'posts' && (
        <>
          {isSearching && <ChatSearch chat={chat.id} open={actions.jump} close={() => setSearching(false)} />}
          <PinnedBar chat={chat} jump={actions.jump} />
          <MessageList chat={chat} history={history} target={target} bottom={bottom} actions={actions} />
          {mayWrite ? (
            <Composer
              chat={chat.id}
              isGroup={chat.type === 'group'}
              schedule={chat.type === 'channel' ? () => show({ kind: 'scheduled' }) : null}
              commands={profile?.commands ?? []}
              bot={profile}
              keys={keys}
              placeholder={
                (asks?.reply_keyboard ?? (keys?.isOpen ? keys.keyboard : undefined))?.input_field_placeholder
              }
              replyTo={subject?.kind === 'reply' ? subject.message : null}
              editing={subject?.kind === 'edit' ? subject.message : null}
              done={() => begin(null)}
              sent={toBottom}
              editLast={() => begin(lastOwnOf(history) ?? subject)}
            />
          ) : (
            <Closed chat={chat} />
          )}
        </>
      )}
      <Part>
        <DropZone zone={main} take={attaches ? (files) => history.tray.add(files) : null} />
      </Part>
      {shown && <Over shown={shown} menu={{ chat, mayWrite, show, begin }} close={() => show(null)} />}
    </main>
  );
}
