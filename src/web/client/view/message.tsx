/** Shows a message or an album, with its marks, keyboard and reactions. */

import { lazy, type MouseEvent, memo, type ReactNode } from 'react';
import type { Outgoing } from '../model/history.js';
import { useAuthor } from '../model/people.js';
import { personName, previewOf, summaryOf } from '../names.js';
import { me } from '../session.js';
import type { Message } from '../types.js';
import { fullDate, t, timeText } from '../words.js';
import { Album, type AlbumItem, arePictures, hasOwnCaptions, type OnOpen } from './album.js';
import { Icon } from './icons.js';
import { Keyboard } from './keyboard.js';
import { LinkCard } from './link_card.js';
import { mediumOf } from './media.js';
import { ObjectCard, objectOf } from './objects.js';
import { type OnCommand, RichText } from './text.js';
import { Face, Part, useLongPress } from './ui.js';

const PollCard = lazy(async () => ({ default: (await import('./poll.js')).PollCard }));
const PostReactions = lazy(async () => ({ default: (await import('./reactions.js')).PostReactions }));

export interface MessageActions {
  /** Opens the menu of a message, or of the album to which the message belongs. */
  menu: (message: Message, at: { x: number; y: number }) => void;
  jump: (id: number) => void;
  open: OnOpen;
  command: OnCommand;
  /** Moves an unsent message back to the composer. */
  recall: (outgoing: Outgoing) => void;
}

interface BubbleProps {
  /** A single message, or all messages of an album. */
  messages: readonly Message[];
  /**
   * Whether the previous message has the same sender and was sent shortly before. The messages are then shown as a
   * group.
   */
  joined: boolean;
  showName: boolean;
  marked: boolean;
  actions: MessageActions;
}

function forwardedFrom(message: Message): string {
  const origin = message.forward_origin;
  if (!origin) return '';
  return origin.type === 'channel' ? (origin.chat.title ?? '') : personName(origin.sender_user);
}

function Quote({ message, jump }: { message: Message; jump: (id: number) => void }) {
  return (
    <button type="button" className="quote" onClick={() => jump(message.message_id)}>
      <strong>{personName(useAuthor(message.from).user)}</strong>
      <span dir="auto">{summaryOf(previewOf(message))}</span>
    </button>
  );
}

/** Shows the time of a message or album, and whether the message is protected or was edited. */
function Meta({ messages }: { messages: readonly Message[] }) {
  const message = messages.at(-1) as Message;
  return (
    <span className="meta">
      {message.has_protected_content && (
        <span title={t('protected')}>
          <Icon name="lock" size={13} />
          <span className="sr-only">{t('protected')}</span>
        </span>
      )}
      {messages.some(({ edit_date }) => edit_date !== undefined) && <span>{t('edited')}</span>}
      <time dateTime={new Date(message.date * 1_000).toISOString()} title={fullDate(message.date)}>
        {timeText(message.date)}
      </time>
    </span>
  );
}

const emoji = /^(?:\p{Extended_Pictographic}|\p{Emoji_Modifier}|\p{Regional_Indicator}|\u200d|\ufe0f)+$/u;
const segmenter = new Intl.Segmenter();

/** Returns whether a text consists only of one to three emoji. Such a text is shown large. */
const isJumbo = (text: string): boolean =>
  text.length <= 40 && emoji.test(text) && [...segmenter.segment(text)].length <= 3;

/** Returns the class for the colour of a name. The avatar has the same colour. */
const hueOf = (id: number) => `name hue${Math.abs(id) % 8}`;

/** Returns the media files of a message or an album, with their captions. */
export const itemsOf = (messages: readonly Message[]): AlbumItem[] =>
  messages.flatMap((one) => {
    const medium = mediumOf(one);
    const caption = one.caption ? { text: one.caption, entities: one.caption_entities } : undefined;
    return medium ? [{ id: one.message_id, medium, caption }] : [];
  });

function rowClass({ chat }: Message, own: boolean): string {
  if (own) return 'message own';
  return chat.type === 'group' ? 'message faced' : 'message';
}

/** Shows a message's poll, location, venue, contact or dice. */
function MessageObject({ message }: { message: Message }) {
  if (message.poll)
    return (
      <Part>
        <PollCard chat={message.chat.id} message={message.message_id} poll={message.poll} />
      </Part>
    );
  const card = objectOf(message);
  return card && <ObjectCard card={card} />;
}

/** Shows the text of a message, the preview of its first link, and its time. */
function Words({ message, text, children }: { message: Message; text: ReactNode; children: ReactNode }) {
  const card = <LinkCard message={message} />;
  const isCardFirst = message.link_preview_options?.show_above_text;
  return (
    <div className="words" dir="auto">
      {isCardFirst && card}
      {text}
      {!isCardFirst && card}
      {children}
    </div>
  );
}

/** Compares the messages one by one, because the list creates a new array for an album after each change. */
const isSame = (one: BubbleProps, other: BubbleProps): boolean =>
  one.messages.length === other.messages.length &&
  one.messages.every((message, i) => message === other.messages[i]) &&
  one.joined === other.joined &&
  one.showName === other.showName &&
  one.marked === other.marked &&
  one.actions === other.actions;

export const Bubble = memo(function Bubble({ messages, joined, showName, marked, actions }: BubbleProps) {
  const message = messages[0] as Message;
  const last = messages.at(-1) as Message;
  const worded = messages.find(({ caption, text }) => caption ?? text) ?? message;
  const own = message.from?.id === me.value?.id && message.chat.type !== 'channel';
  const { user: author, avatar } = useAuthor(message.from);
  const media = itemsOf(messages);
  const words = hasOwnCaptions(media) ? undefined : (worded.text ?? worded.caption);
  const above = worded.show_caption_above_media === true;
  const text = words && (
    <span className={isJumbo(words) ? 'text jumbo' : 'text'}>
      <RichText
        text={words}
        entities={worded.entities ?? worded.caption_entities}
        onCommand={actions.command}
      />
    </span>
  );
  const from = forwardedFrom(message);
  const pictures = arePictures(media);
  // The time of pictures without a text is shown over their lower edge. The time of a single video is shown below the
  // video, because the time would cover the video's controls.
  const bare = pictures && !words && (media.length > 1 || media[0]?.medium.kind !== 'video');
  const menu = (event: MouseEvent) => {
    // Keeps the browser's own menu for links and selected text.
    if (getSelection()?.toString() || (event.target as Element).closest('a')) return;
    event.preventDefault();
    actions.menu(worded, { x: event.clientX, y: event.clientY });
  };
  const press = useLongPress((at) => actions.menu(worded, at));
  const marks = { own, joined, marked, pictures, bare };
  const classes = Object.entries(marks).flatMap(([name, set]) => (set ? [name] : []));
  return (
    <article
      className={rowClass(message, own)}
      aria-label={own ? t('you') : personName(author)}
      data-id={message.message_id}
      onContextMenu={menu}
      {...press}
    >
      {showName && <Face id={author?.id ?? 0} name={personName(author)} picture={avatar} size={34} />}
      <div className={['bubble', ...classes].join(' ')}>
        {showName && <span className={hueOf(author?.id ?? 0)}>{personName(author)}</span>}
        {from && (
          <span className="forwarded">
            <Icon name="reply" size={14} /> {t('forwarded_from', { name: from })}
          </span>
        )}
        {message.via_bot && (
          <span className="forwarded">{t('via_bot', { name: `@${message.via_bot.username ?? ''}` })}</span>
        )}
        {message.reply_to_message && <Quote message={message.reply_to_message} jump={actions.jump} />}
        {above && (
          <div className="words" dir="auto">
            {text}
          </div>
        )}
        {media.length > 0 && (
          <Album items={media} open={actions.open}>
            {bare && <Meta messages={messages} />}
          </Album>
        )}
        <MessageObject message={message} />
        {!bare && (
          <Words message={message} text={above ? null : text}>
            <Meta messages={messages} />
          </Words>
        )}
        {last.chat.type === 'channel' && (
          <Part waiting={<div className="reactions" />}>
            <PostReactions chat={last.chat.id} message={messages.map((one) => one.message_id)} />
          </Part>
        )}
      </div>
      <button
        type="button"
        className="icon-button message-more"
        aria-label={t('actions')}
        aria-haspopup="menu"
        onClick={(event) => {
          const { left, bottom } = event.currentTarget.getBoundingClientRect();
          actions.menu(worded, { x: left, y: bottom });
        }}
      >
        <Icon name="more" size={18} />
      </button>
      {last.reply_markup && <Keyboard chat={last.chat.id} message={last} />}
    </article>
  );
}, isSame);
