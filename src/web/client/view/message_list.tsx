/**
 * Shows the messages of a chat. Draws only the messages in view, and loads older messages when the person scrolls up.
 */
import {
  lazy,
  type ReactElement,
  type RefObject,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import { Virtualizer, type VirtualizerHandle } from 'virtua';
import { isVisual } from '../model/attachments.js';
import { botDrafts } from '../model/bot_drafts.js';
import { markRead, setLooked, unread_max } from '../model/chats.js';
import { type History, inOneAlbum, type Outgoing } from '../model/history.js';
import { chatName, personName, previewOf, serviceKindOf, serviceText, summaryOf } from '../names.js';
import { me } from '../session.js';
import { useSignal } from '../signal.js';
import type { ChatSummary, Message, MessageDraft } from '../types.js';
import { dayText, t, timeText, unreadText } from '../words.js';
import { DraftBubble } from './draft.js';
import { Icon } from './icons.js';
import { Bubble, type MessageActions } from './message.js';
import { RichText } from './text.js';
import { Part, Spinner, Trouble } from './ui.js';

const OutgoingFiles = lazy(async () => ({ default: (await import('./attachments.js')).OutgoingFiles }));

type Item =
  | { kind: 'day'; key: string; date: number }
  | { kind: 'unread'; key: string }
  | { kind: 'service'; key: string; message: Message }
  | { kind: 'messages'; key: string; messages: Message[]; joined: boolean; showName: boolean }
  | { kind: 'outgoing'; key: string; outgoing: Outgoing }
  | { kind: 'draft'; key: string; draft: MessageDraft };

/** Returns whether the item shows the message with this id. */
const holds = (item: Item, id: number): boolean =>
  (item.kind === 'messages' && item.messages.some(({ message_id }) => message_id === id)) ||
  (item.kind === 'service' && item.message.message_id === id);

/** Returns the id of the item's last message, or 0 for an item without a message. */
function lastIdOf(item: Item | undefined): number {
  if (item?.kind === 'service') return item.message.message_id;
  return item?.kind === 'messages' ? (item.messages.at(-1)?.message_id ?? 0) : 0;
}

/** Messages from one person are shown as a group if at most this many seconds lie between each message and the next. */
const together_s = 300;

/**
 * Returns a function that is called with the date of each message in order. It returns whether a new day begins with
 * this date.
 */
function dayChanges(): (date: number) => boolean {
  let [begin, end] = [0, 0];
  return (date) => {
    if (date >= begin && date < end) return false;
    const day = new Date(date * 1_000);
    begin = day.setHours(0, 0, 0, 0) / 1_000;
    end = day.setDate(day.getDate() + 1) / 1_000;
    return true;
  };
}

/**
 * Builds the rows of all messages that are already sent. If `mark` is not null, also adds a line above the first
 * message of other people after `mark`.
 */
function itemsOf({ messages, atStart, first }: History, type: string, mark: number | null): Item[] {
  const items: Item[] = [];
  let before: Message | undefined;
  const isNewDay = dayChanges();
  // The line above the first unread message is shown only if this message is loaded.
  let unread = mark !== null && (atStart || first <= mark) ? mark : Number.POSITIVE_INFINITY;
  for (const message of messages) {
    const newDay = isNewDay(message.date);
    const last = items.at(-1);
    if (last?.kind === 'messages' && inOneAlbum(last.messages[0], message)) {
      last.messages.push(message);
      before = message;
      continue;
    }
    if (newDay) items.push({ kind: 'day', key: `d${message.message_id}`, date: message.date });
    if (message.message_id > unread && message.from?.id !== me.value?.id) {
      items.push({ kind: 'unread', key: `u${unread}` });
      unread = Number.POSITIVE_INFINITY;
      before = undefined;
    }
    if (serviceKindOf(message)) {
      items.push({ kind: 'service', key: `m${message.message_id}`, message });
      before = undefined;
      continue;
    }
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
    before = message;
  }
  return items;
}

const outgoingOf = ({ outgoing }: History): Item[] =>
  outgoing.map((one) => ({ kind: 'outgoing', key: one.key, outgoing: one }));

/** Adds the bot's draft as a row. Does not add it if the bot has already sent a message after the draft. */
function withDraft(items: Item[], { messages, atEnd }: History, draft: MessageDraft | null): Item[] {
  if (draft === null || !atEnd || (draft.stopped && draft.text === '')) return items;
  const newest = messages.findLast(({ from }) => from?.id !== me.value?.id)?.message_id ?? 0;
  return newest > draft.after_message_id
    ? items
    : [...items, { kind: 'draft', key: `b${draft.draft_id}`, draft }];
}

interface PendingProps {
  outgoing: Outgoing;
  history: History;
  recall: MessageActions['recall'];
}

function Pending({ outgoing, history, recall }: PendingProps) {
  const { files, failed } = outgoing;
  const marks = [failed && 'failed', files?.every(isVisual) && 'pictures'].filter(Boolean);
  return (
    <article className="message own" aria-label={t('you')}>
      <div className={['bubble own', ...marks].join(' ')}>
        {outgoing.replyTo && (
          <span className="quote">
            <strong>{personName(outgoing.replyTo.from)}</strong>
            <span>{summaryOf(previewOf(outgoing.replyTo))}</span>
          </span>
        )}
        {files && (
          <Part>
            <OutgoingFiles outgoing={outgoing} files={files} />
          </Part>
        )}
        <div className="words" dir="auto">
          <span className="text">
            <RichText text={outgoing.text} entities={outgoing.entities} />
          </span>
          <span className="meta">
            <Icon name={failed ? 'warn' : 'clock'} size={13} />
            <span className="sr-only">{failed ? t('not_sent') : t('sending')}</span>
            {timeText(outgoing.order / 1_000)}
          </span>
        </div>
      </div>
      {files && failed === undefined && (
        <div className="sending-row">
          <button type="button" className="link" onClick={() => history.cancel(outgoing)}>
            {t('cancel')}
          </button>
        </div>
      )}
      {failed !== undefined && (
        <div className="failed-row" role="alert">
          <span>{failed}</span>
          <button type="button" className="link" onClick={() => history.retry(outgoing)}>
            {t('retry')}
          </button>
          <button type="button" className="link" onClick={() => recall(outgoing)}>
            {t('edit')}
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
  /** The message to scroll to. `n` changes with each request to scroll, even to the same message. */
  target: { id: number; n: number } | null;
  /** A number that increases when the person sends a message. The list then scrolls to its end. */
  bottom: number;
  actions: MessageActions;
}

const near = 600;
/** The height of the space below the last message, in pixels. */
const foot = 10;
/** The list counts as scrolled to its end if the distance to the end is smaller than this, in pixels. */
const at_end = 60;
const marked_ms = 1_600;

/** Returns handlers that stay the same objects, so that a new message does not make other messages redraw. */
function useStable(actions: MessageActions): MessageActions {
  const latest = useRef(actions);
  latest.current = actions;
  return useMemo(
    () => ({
      menu: (message, at) => latest.current.menu(message, at),
      jump: (id) => latest.current.jump(id),
      open: (item) => latest.current.open(item),
      command: (text) => latest.current.command(text),
      recall: (outgoing) => latest.current.recall(outgoing),
    }),
    [],
  );
}

/**
 * Returns the id of the last message before the first unread one, or null if nothing is unread. The id stays the same
 * while the person reads. It changes when a new message arrives after the person has read everything. It becomes null
 * when the person sends a message.
 */
function useMark(chat: ChatSummary, sent: number): number | null {
  const { unread_count = 0, read_message_id = 0 } = chat;
  // If the person has never read anything in a chat with a long history, the list opens at its end.
  const isUnread = unread_count > 0 && (read_message_id > 0 || unread_count < unread_max);
  const [mark, setMark] = useState(isUnread ? read_message_id : null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the line stays in its place while the person reads
  useEffect(() => {
    if (isUnread) setMark(read_message_id);
  }, [isUnread]);
  useEffect(() => {
    if (sent > 0) setMark(null);
  }, [sent]);
  return mark;
}

const restOf = ({ scrollSize, viewportSize, scrollOffset }: VirtualizerHandle): number =>
  scrollSize - viewportSize - scrollOffset;

/** Returns the id of the last message whose lower edge is in view, or 0 if there is none. */
function lastSeen(view: VirtualizerHandle, items: readonly Item[]): number {
  const end = view.scrollOffset + view.viewportSize;
  let index = Math.min(view.findItemIndex(end), items.length - 1);
  if (view.getItemOffset(index) + view.getItemSize(index) > end + foot) index--;
  while (index >= 0 && lastIdOf(items[index]) === 0) index--;
  return lastIdOf(items[index]);
}

/** How long a row must stay in place before it counts as seen. By then, the list has measured the row's height. */
const seen_ms = 100;

/** The scroll position of the list, and how the list scrolls when its rows change. */
interface Place {
  readonly list: RefObject<VirtualizerHandle | null>;
  /**
   * Whether the list stays scrolled to its end when it grows. True at first, after the person sends a message, and
   * after scrolling to the end. False after scrolling up or jumping to a message.
   */
  sticks: boolean;
  /** Whether the list must still scroll to the first unread message. */
  isOpening: boolean;
  offset: number;
}

/**
 * Marks messages as read when they come into view. Call `lookSoon` after each change of the visible part. `isBehind` is
 * true if the end of the list is not in view.
 */
function useReading(chat: number, history: History, items: readonly Item[], place: Place) {
  const [isBehind, setBehind] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const look = () => {
    const view = place.list.current;
    if (!view || place.isOpening || !history.started) return;
    if (history.atEnd && restOf(view) < at_end) place.sticks = true;
    // If the list is too short for scrolling, loads more messages now, because nobody can scroll to load them.
    const isShort = view.scrollSize <= view.viewportSize + 1;
    if (isShort && history.loading === null && !history.failed)
      void (history.atEnd ? history.loadOlder() : history.loadNewer());
    const isAtEnd = place.sticks && history.atEnd;
    setLooked(isAtEnd ? chat : 0);
    setBehind(!isAtEnd);
    if (!document.hasFocus()) return;
    if (isAtEnd) markRead(chat);
    else markRead(chat, lastSeen(view, items));
  };
  const latest = useRef(look);
  latest.current = look;
  const [lookSoon] = useState(() => () => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => latest.current(), seen_ms);
  });
  useEffect(() => {
    addEventListener('focus', lookSoon);
    return () => {
      clearTimeout(timer.current);
      setLooked(0);
      removeEventListener('focus', lookSoon);
    };
  }, [lookSoon]);
  return { lookSoon, isBehind };
}

/** Scrolls to the message `target`. Returns its id while the message is highlighted, otherwise 0. */
function useJumps(target: MessageListProps['target'], items: readonly Item[], place: Place): number {
  const [marked, setMarked] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls only when `target.n` changes
  useEffect(() => {
    if (!target) return;
    const index = items.findIndex((item) => holds(item, target.id));
    if (index < 0) return;
    place.sticks = false;
    place.isOpening = false;
    place.list.current?.scrollToIndex(index, { align: 'center' });
    setMarked(target.id);
    const timer = setTimeout(() => setMarked(0), marked_ms);
    return () => clearTimeout(timer);
  }, [target?.n]);
  return marked;
}

/** Controls the scroll position of the list, which opens at the first unread message or at its end. */
function useScrolling(
  { chat, history, target, bottom }: MessageListProps,
  items: readonly Item[],
  mark: number | null,
) {
  const list = useRef<VirtualizerHandle>(null);
  const { current: place } = useRef<Place>({
    list,
    sticks: mark === null,
    isOpening: mark !== null,
    offset: 0,
  });
  const [far, setFar] = useState(false);
  const marked = useJumps(target, items, place);
  const { lookSoon, isBehind } = useReading(chat.id, history, items, place);

  const keepAtEnd = () => {
    const view = list.current;
    if (!view || !place.sticks || items.length === 0) return;
    const line = document.hasFocus() ? -1 : items.findIndex(({ kind }) => kind === 'unread');
    // While the window does not have the focus, does not scroll past the first unread message, because the person has
    // not read it.
    if (line >= 0 && view.getItemOffset(line) < view.scrollSize - view.viewportSize) {
      place.sticks = false;
      view.scrollToIndex(line, { align: 'start' });
    } else view.scrollToIndex(items.length - 1, { align: 'end', offset: foot });
  };
  const toNewest = () => {
    place.sticks = true;
    place.isOpening = false;
    if (history.atEnd) keepAtEnd();
    else void history.reset();
  };

  // biome-ignore lint/correctness/useExhaustiveDependencies: runs after each change of the rows
  useLayoutEffect(() => {
    const line = place.isOpening ? items.findIndex(({ kind }) => kind === 'unread') : -1;
    if (line >= 0) {
      place.isOpening = false;
      list.current?.scrollToIndex(line, { align: 'start' });
    }
    keepAtEnd();
    lookSoon();
  }, [items]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: runs again only if the chat changes
  useEffect(() => {
    if (mark === null) void history.loadNewest();
    else
      void history.showUnread(mark, chat.last_message?.message_id ?? 0).then(() => {
        // If the unread messages were deleted meanwhile, the list has not scrolled to them and is still opening.
        if (place.isOpening) toNewest();
      });
  }, [history, chat.id]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls only when `bottom` changes
  useEffect(() => {
    if (bottom > 0) toNewest();
  }, [bottom]);

  const onScroll = (offset: number) => {
    const view = list.current;
    if (!view) return;
    const rest = restOf(view);
    // A list that is scrolled to its end stays in this state when messages are added, until the person scrolls up.
    if (rest >= at_end && offset < place.offset - 1) place.sticks = false;
    else if (rest < at_end && history.atEnd) place.sticks = true;
    if (!place.sticks) setLooked(0);
    place.offset = offset;
    setFar(rest > 500 || !history.atEnd);
    lookSoon();
    if (history.loading !== null || history.failed) return;
    if (offset < near) void history.loadOlder();
    else if (rest < near && !history.atEnd) void history.loadNewer();
  };
  const onResize = () => {
    keepAtEnd();
    lookSoon();
  };

  return { list, far, isBehind, marked, onScroll, onResize, toNewest };
}

interface RowProps {
  chat: ChatSummary;
  item: Item;
  history: History;
  marked: number;
  actions: MessageActions;
}

function Row({ chat, item, history, marked, actions }: RowProps) {
  switch (item.kind) {
    case 'day':
      return (
        <div className="day">
          <span>{dayText(item.date)}</span>
        </div>
      );
    case 'unread':
      return (
        <div className="unread-line">
          <span>{t('unread_messages')}</span>
        </div>
      );
    case 'service':
      return (
        <div className="day" data-id={item.message.message_id}>
          <ServiceLine message={item.message} jump={actions.jump} />
        </div>
      );
    case 'outgoing':
      return <Pending outgoing={item.outgoing} history={history} recall={actions.recall} />;
    case 'draft':
      return <DraftBubble chat={chat.id} draft={item.draft} name={chatName(chat)} />;
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

/**
 * Returns a function that draws a row. The list calls it for all visible rows in each frame while the person scrolls,
 * so it returns the same element for an unchanged row.
 */
function useDrawRow(chat: ChatSummary, history: History, marked: number, actions: MessageActions) {
  return useMemo(() => {
    const drawn = new WeakMap<Item, ReactElement>();
    return (item: Item): ReactElement => {
      const known = drawn.get(item);
      if (known) return known;
      const row = (
        <Row key={item.key} chat={chat} item={item} history={history} marked={marked} actions={actions} />
      );
      drawn.set(item, row);
      return row;
    };
  }, [chat, history, marked, actions]);
}

export function MessageList(props: MessageListProps) {
  const { chat, history } = props;
  const version = useSignal(history);
  const mark = useMark(chat, props.bottom);
  const box = useRef<HTMLDivElement>(null);
  const firstId = useRef(0);
  useSignal(botDrafts);
  const draft = botDrafts.of(chat.id);
  useEffect(() => {
    if (chat.type === 'private') void botDrafts.load(chat.id);
  }, [chat.id, chat.type]);
  const { messages, atStart } = history;
  // biome-ignore lint/correctness/useExhaustiveDependencies: `messages` is a new array after each change
  const sent = useMemo(() => itemsOf(history, chat.type, mark), [messages, atStart, chat.type, mark]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `version` changes with the history
  const rows = useMemo(() => [...sent, ...outgoingOf(history)], [sent, history, version]);
  const items = useMemo(() => withDraft(rows, history, draft), [rows, history, draft]);
  const { list, far, isBehind, marked, onScroll, onResize, toNewest } = useScrolling(props, items, mark);
  const unread = isBehind ? unreadText(chat.unread_count) : '';
  const actions = useStable(props.actions);
  const drawRow = useDrawRow(chat, history, marked, actions);
  // Keeps the visible rows in place when rows are added or removed above them.
  const shifted = firstId.current > 0 && history.first !== firstId.current;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the first message changes only with the items
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
          onResize={onResize}
          bufferSize={400}
        >
          {drawRow}
        </Virtualizer>
        <div className="foot" />
      </div>
      {(far || unread !== '') && (
        <button
          type="button"
          className="to-end"
          aria-label={unread === '' ? t('to_newest') : `${t('to_newest')}, ${t('unread', { n: unread })}`}
          onClick={toNewest}
        >
          <Icon name="down" />
          {unread !== '' && <span className="badge">{unread}</span>}
        </button>
      )}
    </div>
  );
}

/** Shows a service message. If it is about a pinned message, a press scrolls to that message. */
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
