/**
 * The list of messages in a chat. Draws only the messages in view, and loads older messages when the person scrolls up.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { Virtualizer, type VirtualizerHandle } from 'virtua';
import { markRead, setLooked } from '../model/chats.js';
import type { History, Outgoing } from '../model/history.js';
import { personName, previewOf, serviceKindOf, serviceText, summaryOf } from '../names.js';
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

/** Returns whether the item shows the message with this id. */
const holds = (item: Item, id: number): boolean =>
  (item.kind === 'messages' && item.messages.some(({ message_id }) => message_id === id)) ||
  (item.kind === 'service' && item.message.message_id === id);

/** The time within which messages of one person are grouped. */
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
    if (serviceKindOf(message)) {
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
            {timeText(outgoing.order / 1_000)}
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
  /** A message to scroll to. `n` changes with each request, even for the same message. */
  target: { id: number; n: number } | null;
  /** Changes when the person sends a message. The list then scrolls to the end. */
  bottom: number;
  actions: MessageActions;
}

const near = 600;
/** The height of the space below the last message. */
const foot = 10;
const marked_ms = 1_600;

/** The handlers of drawn messages never change, so that a new message redraws none of them. */
function useStable(actions: MessageActions): MessageActions {
  const latest = useRef(actions);
  latest.current = actions;
  return useMemo(
    () => ({
      menu: (message, at) => latest.current.menu(message, at),
      jump: (id) => latest.current.jump(id),
      open: (url) => latest.current.open(url),
      command: (text) => latest.current.command(text),
    }),
    [],
  );
}

/**
 * Keeps the list at its end while it sticks there: initially, after the person sent a message, and after scrolling to
 * the end. Scrolling up and jumping to a message end this.
 */
function useScrolling({ chat, history, target, bottom }: MessageListProps, items: readonly Item[]) {
  const list = useRef<VirtualizerHandle>(null);
  const stick = useRef(true);
  const lastOffset = useRef(0);
  const [away, setAway] = useState(false);
  const [marked, setMarked] = useState(0);

  const readIfSeen = () => {
    if (stick.current && document.hasFocus()) markRead(chat.id);
  };
  const keepAtEnd = () => {
    if (stick.current && items.length > 0)
      list.current?.scrollToIndex(items.length - 1, { align: 'end', offset: foot });
  };
  const toNewest = () => {
    stick.current = true;
    if (history.atEnd) keepAtEnd();
    else void history.reset();
  };

  useLayoutEffect(keepAtEnd, [items]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: `readIfSeen` reads only references and the chat
  useEffect(() => {
    void history.loadNewest();
    setLooked(chat.id);
    addEventListener('focus', readIfSeen);
    return () => {
      setLooked(0);
      removeEventListener('focus', readIfSeen);
    };
  }, [history, chat.id]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: the newest message counts as read once it is in view
  useEffect(() => {
    if (history.atEnd) readIfSeen();
  }, [chat.last_message?.message_id, history.atEnd, chat.id]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: only a changed number is a request to scroll
  useEffect(() => {
    if (bottom > 0) toNewest();
  }, [bottom]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: only a changed number is a request to scroll
  useEffect(() => {
    if (!target) return;
    const index = items.findIndex((item) => holds(item, target.id));
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
    // A list that grows at its bottom still counts as scrolled to the end. Only scrolling up changes that.
    if (rest >= 60 && offset < lastOffset.current - 1) stick.current = false;
    else if (rest < 60 && history.atEnd) stick.current = true;
    lastOffset.current = offset;
    setAway(rest > 500 || !history.atEnd);
    readIfSeen();
    if (history.loading !== null || history.failed) return;
    if (offset < near) void history.loadOlder();
    else if (rest < near && !history.atEnd) void history.loadNewer();
  };

  return { list, away, marked, onScroll, keepAtEnd, toNewest };
}

interface RowProps {
  item: Item;
  history: History;
  marked: number;
  actions: MessageActions;
}

function Row({ item, history, marked, actions }: RowProps) {
  switch (item.kind) {
    case 'day':
      return (
        <div className="day">
          <span>{dayText(item.date)}</span>
        </div>
      );
    case 'service':
      return (
        <div className="day" data-id={item.message.message_id}>
          <ServiceLine message={item.message} jump={actions.jump} />
        </div>
      );
    case 'outgoing':
      return <Pending outgoing={item.outgoing} history={history} />;
    case 'messages':
      return (
        <Bubble
          messages={item.messages}
          joined={item.joined}
          showName={item.showName}
          marked={holds(item, marked)}
          actions={actions}
        />
      );
  }
}

export function MessageList(props: MessageListProps) {
  const { chat, history } = props;
  const version = useSignal(history);
  const box = useRef<HTMLDivElement>(null);
  const firstId = useRef(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the version changes with the content of the history
  const items = useMemo(() => itemsOf(history, chat.type), [history, version, chat.type]);
  const { list, away, marked, onScroll, keepAtEnd, toNewest } = useScrolling(props, items);
  const actions = useStable(props.actions);
  // When rows are added or removed above the visible rows, the visible rows stay in place.
  const shifted = firstId.current > 0 && history.first !== firstId.current;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the first message changes with the items
  useLayoutEffect(() => {
    firstId.current = history.first;
  }, [items]);

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
          onResize={keepAtEnd}
          bufferSize={400}
        >
          {(item) => <Row key={item.key} item={item} history={history} marked={marked} actions={actions} />}
        </Virtualizer>
        <div className="foot" />
      </div>
      {away && (
        <button type="button" className="to-end" aria-label={t('to_newest')} onClick={toNewest}>
          <Icon name="down" />
          {(chat.unread_count ?? 0) > 0 && <span className="badge">{chat.unread_count}</span>}
        </button>
      )}
    </div>
  );
}

/** Scrolls to the pinned message. */
function ServiceLine({ message, jump }: { message: Message; jump: (id: number) => void }) {
  const { pinned_message: pinned, from } = message;
  if (!pinned) return <span>{serviceText(previewOf(message))}</span>;
  return (
    <button type="button" onClick={() => jump(pinned.message_id)}>
      {'date' in pinned
        ? t('pinned_this', { name: personName(from), text: summaryOf(previewOf(pinned)) })
        : t('pinned_a_message', { name: personName(from) })}
    </button>
  );
}
