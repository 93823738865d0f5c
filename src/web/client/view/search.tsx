/** Shows the messages that match a search query, with the words highlighted. */
import { useEffect, useRef, useState } from 'react';
import { type piecesOf, snippetOf, wordsOf } from '../found.js';
import { chats } from '../model/chats.js';
import { useFound } from '../model/search.js';
import { chatName, personName, previewOf, summaryOf } from '../names.js';
import { me } from '../session.js';
import type { Message } from '../types.js';
import { shortDate, t } from '../words.js';
import { Icon } from './icons.js';
import { Face, IconButton, Spinner, Trouble } from './ui.js';

function Marked({ pieces }: { pieces: ReturnType<typeof piecesOf> }) {
  return (
    <>
      {pieces.map(({ text, isFound }, i) =>
        // biome-ignore lint/suspicious/noArrayIndexKey: the pieces are in the order of the text
        isFound ? <mark key={i}>{text}</mark> : <span key={i}>{text}</span>,
      )}
    </>
  );
}

/** Joins the searchable texts of a message into one line. */
const textOf = (message: Message): string => {
  const { text = '', file_name = '' } = previewOf(message);
  return [file_name, text].filter(Boolean).join(' · ') || summaryOf(previewOf(message));
};

interface RowProps {
  message: Message;
  words: readonly string[];
  /** Whether all results are from the open chat. Each row then names the sender instead of the chat. */
  isInChat: boolean;
  open?: (id: number) => void;
}

function FoundRow({ message, words, isInChat, open }: RowProps) {
  const chat = chats.byId.get(message.chat.id) ?? message.chat;
  const { from = message.sender_chat, message_id } = message;
  const mine = message.from?.id === me.value?.id;
  const sender = mine ? t('you') : message.from ? personName(message.from) : chatName(chat);
  const name = isInChat ? sender : chatName(chat);
  const face = isInChat && from ? from.id : chat.id;
  const inside = (
    <>
      <Face
        id={face}
        name={name}
        size={40}
        picture={isInChat ? undefined : chats.byId.get(chat.id)?.avatar}
      />
      <span className="chat-row-text">
        <span className="chat-row-top">
          <span className="chat-name">
            <bdi>{name}</bdi>
          </span>
          <time>{shortDate(message.date)}</time>
        </span>
        <span className="chat-last" dir="auto">
          <Marked pieces={snippetOf(textOf(message), words)} />
        </span>
      </span>
    </>
  );
  return open ? (
    <button type="button" className="chat-row found" onClick={() => open(message_id)}>
      {inside}
    </button>
  ) : (
    <a className="chat-row found" href={`#/chat/${chat.id}/${message_id}`}>
      {inside}
    </a>
  );
}

interface ResultsProps {
  query: string;
  /** The chat in which to search. If absent, all chats are searched. */
  chat?: number;
  open?: (id: number) => void;
}

/**
 * Shows the messages that match a query. A press on a row calls `open`. If `open` is absent, a press goes to the
 * message in its chat.
 */
export function FoundMessages({ query, chat, open }: ResultsProps) {
  const { messages, isLoading, failed, more } = useFound(query, chat);
  const words = wordsOf(query);
  const isNothing = !isLoading && failed === '' && messages.length === 0;
  return (
    <>
      {messages.map((message) => (
        <FoundRow
          key={`${message.chat.id}_${message.message_id}`}
          message={message}
          words={words}
          isInChat={chat !== undefined}
          open={open}
        />
      ))}
      <p className="found-note" role="status">
        {isNothing ? t(more ? 'nothing_found_yet' : 'nothing_found') : ''}
      </p>
      {failed !== '' && <Trouble text={failed} />}
      {isLoading && (
        <div className="center">
          <Spinner />
        </div>
      )}
      {more && (
        <button type="button" className="button found-more" onClick={more}>
          {t('search_further')}
        </button>
      )}
    </>
  );
}

/** Shows the search in the open chat. */
export function ChatSearch({
  chat,
  open,
  close,
}: {
  chat: number;
  open: (id: number) => void;
  close: () => void;
}) {
  const [text, setText] = useState('');
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  return (
    <search className="chat-search">
      <form className="search" onSubmit={(event) => event.preventDefault()}>
        <Icon name="search" size={18} />
        <input
          ref={input}
          type="search"
          value={text}
          placeholder={t('search_in_chat')}
          aria-label={t('search_in_chat')}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === 'Escape') close();
          }}
        />
        <IconButton icon="close" label={t('close')} onClick={close} />
      </form>
      {text.trim() !== '' && (
        <section className="chat-search-results" aria-label={t('messages')}>
          <FoundMessages query={text} chat={chat} open={open} />
        </section>
      )}
    </search>
  );
}
