/** The messages of a chat. Only those in view are drawn; older ones are loaded on scrolling up. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { Virtualizer, type VirtualizerHandle } from 'virtua';
import { historyOf, markRead, setLooked } from '../model/chats.js';
import type { History, Outgoing } from '../model/history.js';
import { personName, previewOf, summaryOf } from '../names.js';
import { me } from '../session.js';
import { useSignal } from '../signal.js';
import type { ChatSummary, Message } from '../types.js';
import { dayText, t, timeText } from '../words.js';
import { Icon } from './icons.js';
import { Bubble, type MessageActions } from './message.js';
import { Spinner, Trouble } from './ui.js';

type Item =
  | { kind: 'day'; key: string; date: number }
  | { kind: 'service'; key: string; message: Message }
  | { kind: 'messages'; key: string; messages: Message[]; joined: boolean; showName: boolean }
  | { kind: 'outgoing'; key: string; outgoing: Outgoing };

/** Messages of one person within this time are grouped. */
const together_s = 300;

function itemsOf({ messages, outgoing }: History, type: string): Item[] {
  const items: Item[] = [];
  let before: Message | undefined;
  let day = '';
  for (const message of messages) {
    const own = new Date(message.date * 1_000).toDateString();
    const newDay = own !== day;
    day = own;
    if (newDay) items.push({ kind: 'day', key: `d${message.message_id}`, date: message.date });
    const last = items.at(-1);
    if (message.pinned_message) {
      items.push({ kind: 'service', key: `m${message.message_id}`, message });
      before = undefined;
      continue;
    }
    const album = message.media_group_id;
    if (album !== undefined && last?.kind === 'messages' && last.messages[0]?.media_group_id === album) {
      last.messages.push(message);
    } else {
      const same = !newDay && before !== undefined && before.from?.id === message.from?.id;
      const joined = same && message.date - (before?.date ?? 0) < together_s;
      const others = type === 'group' && message.from?.id !== me.value?.id;
      items.push({
        kind: 'messages',
        key: `m${message.message_id}`,
        messages: [message],
        joined,
        showName: others && !joined,
      });
    }
    before = message;
  }
  for (const one of outgoing) items.push({ kind: 'outgoing', key: one.key, outgoing: one });
  return items;
}

function Pending({ outgoing, history }: { outgoing: Outgoing; history: History }) {
  return (
    <article className="message own" aria-label={t('you')}>
      <div className={outgoing.failed ? 'bubble own failed' : 'bubble own'}>
        {outgoing.replyTo && (
          <span className="quote">
            <strong>{personName(outgoing.replyTo.from)}</strong>
            <span>{summaryOf(previewOf(outgoing.replyTo))}</span>
          </span>
        )}
        {outgoing.preview && (
          <div className="media">
            <img src={outgoing.preview} alt="" />
          </div>
        )}
        <div className="words">
          <span className="text" dir="auto">
            {outgoing.text}
          </span>
          <span className="meta">
            <Icon name={outgoing.failed ? 'warn' : 'clock'} size={13} />
            <span className="sr-only">{outgoing.failed ? t('not_sent') : t('sending')}</span>
            {timeText(outgoing.date)}
          </span>
        </div>
      </div>
      {outgoing.failed !== undefined && (
        <div className="failed-row" role="alert">
          <span>{outgoing.failed}</span>
          <button type="button" className="link" onClick={() => history.retry(outgoing)}>
            {t('retry')}
          </button>
          <button type="button" className="link" onClick={() => history.discard(outgoing)}>
            {t('delete')}
          </button>
        </div>
      )}
    </article>
  );
}

interface MessageListProps {
  chat: ChatSummary;
  history: History;
  /** A message to scroll to; `n` changes with each request, also for the same message. */
  target: { id: number; n: number } | null;
  /** Changes when the person sends a message: the list then scrolls to the end. */
  bottom: number;
  actions: MessageActions;
}

const near = 600;
/** Height of the space below the last message. */
const foot = 10;
const marked_ms = 1_600;

export function MessageList({ chat, history, target, bottom, actions }: MessageListProps) {
  const version = useSignal(history);
  const list = useRef<VirtualizerHandle>(null);
  const box = useRef<HTMLDivElement>(null);
  const stick = useRef(true);
  const lastOffset = useRef(0);
  const [away, setAway] = useState(false);
  const [marked, setMarked] = useState(0);
  const firstId = useRef(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version changes with the content of the history
  const items = useMemo(() => itemsOf(history, chat.type), [history, version, chat.type]);
  // Rows were added or removed above: the visible ones stay where they are.
  const shifted = firstId.current > 0 && history.first !== firstId.current;
  // The handlers of drawn messages never change, so that a new message draws only itself.
  const latest = useRef(actions);
  latest.current = actions;
  const stable = useMemo<MessageActions>(
    () => ({
      menu: (message, at) => latest.current.menu(message, at),
      jump: (id) => latest.current.jump(id),
      open: (url) => latest.current.open(url),
      command: (text) => latest.current.command(text),
    }),
    [],
  );

  useEffect(() => {
    void history.loadNewest();
    setLooked(chat.id);
    const onFocus = () => {
      if (stick.current && document.hasFocus()) markRead(chat.id);
    };
    addEventListener('focus', onFocus);
    return () => {
      setLooked(0);
      removeEventListener('focus', onFocus);
    };
  }, [history, chat.id]);

  const toEnd = () => {
    if (items.length > 0) list.current?.scrollToIndex(items.length - 1, { align: 'end', offset: foot });
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls to the end when items were added there
  useLayoutEffect(() => {
    firstId.current = history.first;
    if (stick.current) toEnd();
  }, [items]);

  const lastId = chat.last_message?.message_id;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the newest message counts as read once it is in view
  useEffect(() => {
    if (history.atEnd && stick.current && document.hasFocus()) markRead(chat.id);
  }, [lastId, history.atEnd, chat.id]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: only a changed number is a request to scroll
  useEffect(() => {
    if (bottom === 0) return;
    stick.current = true;
    if (history.atEnd) toEnd();
    else void history.reset();
  }, [bottom]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: only a changed number is a request to scroll
  useEffect(() => {
    if (!target) return;
    const index = items.findIndex(
      (item) =>
        (item.kind === 'messages' && item.messages.some(({ message_id }) => message_id === target.id)) ||
        (item.kind === 'service' && item.message.message_id === target.id),
    );
    if (index < 0) return;
    stick.current = false;
    list.current?.scrollToIndex(index, { align: 'center' });
    setMarked(target.id);
    const timer = setTimeout(() => setMarked(0), marked_ms);
    return () => clearTimeout(timer);
  }, [target?.n]);

  const onScroll = (offset: number) => {
    const view = list.current;
    if (!view) return;
    const rest = view.scrollSize - view.viewportSize - offset;
    // A list that grows below still counts as at its end; only scrolling up ends that.
    if (rest >= 60 && offset < lastOffset.current - 1) stick.current = false;
    else if (rest < 60 && history.atEnd) stick.current = true;
    lastOffset.current = offset;
    setAway(rest > 500 || !history.atEnd);
    if (stick.current && document.hasFocus()) markRead(chat.id);
    if (history.loading === null && !history.failed) {
      if (offset < near) void history.loadOlder();
      else if (rest < near && !history.atEnd) void history.loadNewer();
    }
  };

  const draw = (item: Item) => {
    switch (item.kind) {
      case 'day':
        return (
          <div className="day" key={item.key}>
            <span>{dayText(item.date)}</span>
          </div>
        );
      case 'service':
        return (
          <div className="day" key={item.key} data-id={item.message.message_id}>
            <button type="button" onClick={() => stable.jump(item.message.pinned_message?.message_id ?? 0)}>
              {serviceText(item.message)}
            </button>
          </div>
        );
      case 'outgoing':
        return <Pending key={item.key} outgoing={item.outgoing} history={history} />;
      default:
        return (
          <Bubble
            key={item.key}
            messages={item.messages}
            joined={item.joined}
            showName={item.showName}
            marked={item.messages.some(({ message_id }) => message_id === marked)}
            actions={stable}
          />
        );
    }
  };

  return (
    <div className="messages-box">
      {history.failed !== '' && <Trouble text={history.failed} retry={() => void history.loadNewest()} />}
      {history.loading !== null && (
        <div className="loading-pill">
          <Spinner />
        </div>
      )}
      {history.started && items.length === 0 && <p className="empty">{t('no_messages')}</p>}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the list is scrolled by the keyboard too */}
      <div ref={box} className="messages" role="log" aria-label={t('messages')} tabIndex={0}>
        <div className="rest" />
        <Virtualizer
          ref={list}
          scrollRef={box}
          data={items}
          shift={shifted}
          onScroll={onScroll}
          onResize={() => {
            if (stick.current) toEnd();
          }}
          bufferSize={400}
        >
          {draw}
        </Virtualizer>
        <div className="foot" />
      </div>
      {away && (
        <button
          type="button"
          className="to-end"
          aria-label={t('to_newest')}
          onClick={() => {
            stick.current = true;
            if (history.atEnd) toEnd();
            else void historyOf(chat.id).reset();
          }}
        >
          <Icon name="down" />
          {(chat.unread_count ?? 0) > 0 && <span className="badge">{chat.unread_count}</span>}
        </button>
      )}
    </div>
  );
}

function serviceText(message: Message): string {
  const { pinned_message: pinned, from } = message;
  const name = personName(from);
  return pinned?.date
    ? t('pinned_this', { name, text: summaryOf(previewOf(pinned)) })
    : t('pinned_a_message', { name });
}
