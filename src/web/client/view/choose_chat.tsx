/** Lets the person choose one of the chats where they may write. */
import { useEffect, useState } from 'react';
import { chats } from '../model/chats.js';
import { chatName } from '../names.js';
import { useSignal } from '../signal.js';
import type { ChatSummary } from '../types.js';
import { t } from '../words.js';
import { Dialog, Face, Failure, Field } from './ui.js';

const takes = (chat: ChatSummary) => chat.type !== 'channel' || chat.can_post === true;

interface ChooseChatProps {
  title: string;
  choose: (chat: ChatSummary) => void;
  busy?: boolean;
  failure?: string;
  close: () => void;
}

export function ChooseChat({ title, choose, busy, failure, close }: ChooseChatProps) {
  useSignal(chats);
  // Loads page after page, so that every chat can be chosen.
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs again after each page
  useEffect(() => void chats.loadMore(), [chats.byId.size]);
  const [text, setText] = useState('');
  const sought = text.trim().toLocaleLowerCase();
  const found = chats.list.filter(
    (chat) => takes(chat) && chatName(chat).toLocaleLowerCase().includes(sought),
  );
  return (
    <Dialog title={title} close={close}>
      <Field label={t('find_chat')} value={text} set={setText} />
      <Failure text={failure ?? ''} />
      <ul className="people choose">
        {found.map((chat) => (
          <li key={chat.id}>
            <button type="button" disabled={busy} onClick={() => choose(chat)}>
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
