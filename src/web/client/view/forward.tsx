/** Forwards messages: the person chooses one of the chats where they may write. */
import { useEffect, useState } from 'react';
import { call } from '../api.js';
import { randomName } from '../clipboard.js';
import { reasonOf } from '../failures.js';
import { chats } from '../model/chats.js';
import { chatName } from '../names.js';
import { say } from '../notes.js';
import { useSignal } from '../signal.js';
import type { ChatSummary, Message } from '../types.js';
import { t } from '../words.js';
import { Dialog, Face, Field } from './ui.js';

const takes = (chat: ChatSummary) => chat.type !== 'channel' || chat.can_post === true;

interface ForwardProps {
  /** From one chat, ordered by id. */
  messages: readonly Message[];
  from: number;
  close: () => void;
}

export function ForwardDialog({ messages, from, close }: ForwardProps) {
  useSignal(chats);
  // Loads page after page, so that every chat can be chosen.
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs again after each page
  useEffect(() => void chats.loadMore(), [chats.byId.size]);
  const [text, setText] = useState('');
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState('');
  // The same key for a repeated press: if an answer was lost, the messages are still forwarded once.
  const [key] = useState(randomName);
  const sought = text.trim().toLocaleLowerCase();
  const found = chats.list.filter(
    (chat) => takes(chat) && chatName(chat).toLocaleLowerCase().includes(sought),
  );
  const forward = async (chat: ChatSummary) => {
    setBusy(true);
    setFailure('');
    const message_ids = messages.map(({ message_id }) => message_id);
    try {
      await call(
        'POST',
        `/api/chats/${chat.id}/forward`,
        { from_chat_id: from, message_ids },
        { key: `${key}.${chat.id}` },
      );
      say(t('forwarded', { name: chatName(chat) }));
      close();
    } catch (error) {
      setFailure(reasonOf(error));
      setBusy(false);
    }
  };
  return (
    <Dialog title={t('forward_to')} close={close}>
      <Field label={t('find_chat')} value={text} set={setText} />
      {failure && (
        <p className="failure" role="alert">
          {failure}
        </p>
      )}
      <ul className="people choose">
        {found.map((chat) => (
          <li key={chat.id}>
            <button type="button" disabled={busy} onClick={() => void forward(chat)}>
              <Face id={chat.id} name={chatName(chat)} picture={chat.avatar} size={40} />
              <span className="grow">
                <strong>
                  <bdi>{chatName(chat)}</bdi>
                </strong>
                <small>{t(chat.type === 'private' ? 'bot' : chat.type)}</small>
              </span>
            </button>
          </li>
        ))}
      </ul>
      {found.length === 0 && <p className="empty">{t('nothing_found')}</p>}
    </Dialog>
  );
}
