/** A chat: its header, the pinned message, the messages, and the composer. */
import { useEffect, useState } from 'react';
import { call } from '../api.js';
import { copyText } from '../clipboard.js';
import { reasonOf } from '../failures.js';
import { chats, historyOf, typing } from '../model/chats.js';
import { chatName, profiles, summaryOf } from '../names.js';
import { say } from '../notes.js';
import { go } from '../route.js';
import { me } from '../session.js';
import { useCell, useSignal } from '../signal.js';
import type { ChatSummary, Message } from '../types.js';
import { t } from '../words.js';
import { ChatInfo } from './chat_info.js';
import { Composer } from './composer.js';
import { ForwardDialog } from './forward.js';
import { Icon } from './icons.js';
import { MessageList } from './message_list.js';
import { PostsPage } from './posts.js';
import { Confirm, Dialog, Face, IconButton, Menu, type MenuItem, Spinner } from './ui.js';

function subtitleOf(chat: ChatSummary, isTyping: boolean): string {
  if (isTyping) return t('typing');
  if (chat.type === 'private') return t('bot');
  return chat.member_count === undefined ? t(chat.type) : t('members_count', { n: chat.member_count });
}

function Header({ chat, tab, info }: { chat: ChatSummary; tab: string; info: () => void }) {
  const doing = useCell(typing).get(chat.id);
  const name = chatName(chat);
  return (
    <header className="bar chat-bar">
      <a className="icon-button only-narrow" href="#/" aria-label={t('back')}>
        <Icon name="back" />
      </a>
      <button type="button" className="chat-title" onClick={info}>
        <Face id={chat.id} name={name} picture={chat.avatar} size={42} />
        <span>
          <strong>
            <bdi>{name}</bdi>
          </strong>
          <small className={doing ? 'accent' : ''} aria-live="polite">
            {subtitleOf(chat, doing !== undefined)}
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
      <IconButton icon="info" label={t('about', { name })} onClick={info} />
    </header>
  );
}

function PinnedBar({
  chat,
  jump,
  unpin,
}: {
  chat: ChatSummary;
  jump: (id: number) => void;
  unpin: () => void;
}) {
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
      <IconButton icon="close" label={t('unpin')} onClick={unpin} />
    </div>
  );
}

const edit_age_s_max = 48 * 3_600;

const attempt = (work: Promise<unknown>) => void work.catch((error) => say(reasonOf(error)));

interface MenuState {
  message: Message;
  at: { x: number; y: number };
}

export function ChatView({ id, tab }: { id: number; tab: string }) {
  useSignal(chats);
  useSignal(profiles);
  const chat = chats.byId.get(id);
  const history = historyOf(id);
  const [menu, setMenu] = useState<MenuState | null>(null);
  const [replyTo, setReplyTo] = useState<Message | null>(null);
  const [editing, setEditing] = useState<Message | null>(null);
  const [deleting, setDeleting] = useState<Message | null>(null);
  const [forwarding, setForwarding] = useState<readonly Message[]>([]);
  const [picture, setPicture] = useState('');
  const [info, setInfo] = useState(false);
  const [target, setTarget] = useState<{ id: number; n: number } | null>(null);
  const [bottom, setBottom] = useState(0);
  const [failure, setFailure] = useState('');

  useEffect(() => {
    setReplyTo(null);
    setEditing(null);
    setTarget(null);
    setInfo(false);
    setFailure('');
    if (!chats.byId.has(id))
      void chats.refresh(id).then(() => {
        if (!chats.byId.has(id)) setFailure(t('chat_missing'));
      });
  }, [id]);

  if (!chat)
    return <main className="main center">{failure ? <Outside id={id} text={failure} /> : <Spinner />}</main>;

  const profile = chat.type === 'private' ? profiles.read(chat.username) : undefined;
  const mayWrite =
    chat.type === 'channel'
      ? chat.can_post === true
      : chat.type !== 'private' || profile === undefined || profile?.can_write !== false;
  const jump = async (message: number) => {
    if (!(await history.show(message))) {
      say(t('message_gone'));
      return;
    }
    setTarget((present) => ({ id: message, n: (present?.n ?? 0) + 1 }));
  };
  const pin = (message: Message) =>
    attempt(call('POST', `/api/chats/${id}/pin`, { message_id: message.message_id }));
  const unpin = () => attempt(call('DELETE', `/api/chats/${id}/pin`));

  /** The person either replies or edits, never both. */
  const begin = (set: (message: Message) => void, message: Message) => {
    setReplyTo(null);
    setEditing(null);
    set(message);
  };

  const itemsFor = (message: Message): MenuItem[] => {
    const mine = message.from?.id === me.value?.id;
    const words = message.text ?? message.caption;
    const pinned = chat.pinned_message?.message_id === message.message_id;
    const items: MenuItem[] = [];
    const writes = mayWrite && chat.type !== 'channel';
    if (writes) items.push({ icon: 'reply', label: t('reply'), act: () => begin(setReplyTo, message) });
    const whole = history.together(message);
    if (!whole.some((one) => one.has_protected_content))
      items.push({ icon: 'forward', label: t('forward'), act: () => setForwarding(whole) });
    if (words)
      items.push({
        icon: 'copy',
        label: t('copy_text'),
        act: () => attempt(copyText(words)),
      });
    items.push(
      pinned
        ? { icon: 'pin', label: t('unpin'), act: unpin }
        : { icon: 'pin', label: t('pin'), act: () => pin(message) },
    );
    const young = Date.now() / 1_000 - message.date < edit_age_s_max;
    if (mine && words !== undefined && young && !message.forward_origin)
      items.push({ icon: 'edit', label: t('edit'), act: () => begin(setEditing, message) });
    if (mine || chat.type !== 'private')
      items.push({ icon: 'trash', label: t('delete'), act: () => setDeleting(message), danger: true });
    return items;
  };

  const write = (text: string) => {
    history.send({ text });
    setBottom(bottom + 1);
  };

  return (
    <main className="main">
      <Header chat={chat} tab={tab} info={() => setInfo(true)} />
      {tab === 'posts' ? (
        <PostsPage chat={chat} open={setPicture} />
      ) : (
        <>
          <PinnedBar chat={chat} jump={(message) => void jump(message)} unpin={unpin} />
          <MessageList
            key={id}
            chat={chat}
            history={history}
            target={target}
            bottom={bottom}
            actions={{
              menu: (message, at) => setMenu({ message, at }),
              jump: (message) => void jump(message),
              open: setPicture,
              command: write,
            }}
          />
          {mayWrite ? (
            <Composer
              chat={id}
              commands={profile?.commands ?? []}
              replyTo={replyTo}
              editing={editing}
              done={() => {
                setReplyTo(null);
                setEditing(null);
              }}
              sent={() => setBottom(bottom + 1)}
              editLast={() => {
                const own = history.messages.findLast(({ from, text }) => from?.id === me.value?.id && text);
                if (own) setEditing(own);
              }}
            />
          ) : (
            <p className="closed">{t(chat.type === 'channel' ? 'only_admins_post' : 'cant_write')}</p>
          )}
        </>
      )}
      {menu && (
        <Menu at={menu.at} label={t('actions')} items={itemsFor(menu.message)} close={() => setMenu(null)} />
      )}
      {deleting && (
        <Confirm
          title={t('delete_message')}
          text={t('delete_message_hint')}
          action={t('delete')}
          danger
          close={() => setDeleting(null)}
          act={() => {
            const { message_id } = deleting;
            attempt(
              call('DELETE', `/api/chats/${id}/messages/${message_id}`).then(() =>
                history.remove(message_id),
              ),
            );
          }}
        />
      )}
      {forwarding.length > 0 && (
        <ForwardDialog messages={forwarding} from={id} close={() => setForwarding([])} />
      )}
      {picture && (
        <Dialog title={t('media_photo')} close={() => setPicture('')} wide>
          <img className="viewer" src={picture} alt={t('media_photo')} referrerPolicy="no-referrer" />
        </Dialog>
      )}
      {info && <ChatInfo chat={chat} close={() => setInfo(false)} />}
    </main>
  );
}

/** Shown for a public chat that the person has not joined. */
function Outside({ id, text }: { id: number; text: string }) {
  const [busy, setBusy] = useState(false);
  return (
    <div className="card stack center-text">
      <p>{id < 0 ? t('join_hint') : text}</p>
      <div className="row center-row">
        <button type="button" className="button" onClick={() => go('')}>
          {t('back')}
        </button>
        {id < 0 && (
          <button
            type="button"
            className="button primary"
            disabled={busy}
            onClick={async () => {
              setBusy(true);
              try {
                await call('POST', `/api/chats/${id}/join`);
                await chats.refresh(id);
              } catch (error) {
                say(reasonOf(error));
              }
              setBusy(false);
            }}
          >
            {t('join')}
          </button>
        )}
      </div>
    </div>
  );
}
