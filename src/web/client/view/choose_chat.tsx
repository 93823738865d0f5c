/** Lets the person choose a chat by its name. */
import { type KeyboardEvent, useEffect, useState } from 'react';
import { chats } from '../model/chats.js';
import { chatName, mayWriteIn } from '../names.js';
import { useSignal } from '../signal.js';
import type { ChatSummary } from '../types.js';
import { t } from '../words.js';
import { Dialog, Face, Failure, Field } from './ui.js';

/** Moves the focus between the text field and the chats with the arrow keys. */
function onArrow(event: KeyboardEvent<HTMLElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  const parts = [...event.currentTarget.querySelectorAll<HTMLElement>('input, li button')];
  event.preventDefault();
  parts[parts.indexOf(document.activeElement as HTMLElement) + step]?.focus();
}

interface ChooseChatProps {
  title: string;
  choose: (chat: ChatSummary) => void;
  /**
   * If true, shows all chats, and Enter chooses the first chat. Otherwise shows only the chats in which the person may
   * write.
   */
  all?: boolean;
  busy?: boolean;
  failure?: string;
  close: () => void;
}

export function ChooseChat({ title, choose, all, busy, failure, close }: ChooseChatProps) {
  useSignal(chats);
  // Loads page after page, so that every chat can be chosen.
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs again after each page
  useEffect(() => chats.loadAll(), [chats.byId.size]);
  const [text, setText] = useState('');
  const sought = text.trim().toLocaleLowerCase();
  const found = chats.all.filter(
    (chat) => (all || mayWriteIn(chat)) && chatName(chat).toLocaleLowerCase().includes(sought),
  );
  return (
    <Dialog title={title} close={close}>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the arrow keys move between its parts */}
      <div onKeyDown={onArrow}>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (all && found[0]) choose(found[0]);
          }}
        >
          <Field label={t('find_chat')} value={text} set={setText} />
        </form>
        <Failure text={failure ?? ''} />
        <ul className="people choose">
          {found.map((chat) => (
            <li key={chat.id}>
              <button type="button" disabled={busy} onClick={() => choose(chat)}>
                <Face id={chat.user_id ?? chat.id} name={chatName(chat)} picture={chat.avatar} size={40} />
                <span className="grow">
                  <strong>
                    <bdi>{chatName(chat)}</bdi>
                  </strong>
                  <small className="capital">{t(chat.type === 'private' ? 'bot' : chat.type)}</small>
                </span>
              </button>
            </li>
          ))}
        </ul>
      </div>
      {found.length === 0 && <p className="empty">{t('nothing_found')}</p>}
    </Dialog>
  );
}
