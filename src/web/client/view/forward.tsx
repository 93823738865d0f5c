/** Forwards messages to a chat that the person chooses. */
import { useState } from 'react';
import { call } from '../api.js';
import { randomName } from '../clipboard.js';
import { reasonOf } from '../failures.js';
import { chatName } from '../names.js';
import { say } from '../notes.js';
import type { ChatSummary, Message } from '../types.js';
import { t } from '../words.js';
import { ChooseChat } from './choose_chat.js';

interface ForwardProps {
  /** The messages to forward, all from one chat, in order of id. */
  messages: readonly Message[];
  from: number;
  close: () => void;
}

export function ForwardDialog({ messages, from, close }: ForwardProps) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState('');
  // Uses the same idempotency key each time the button is pressed. If an answer is lost and the person presses again,
  // the messages are forwarded only once.
  const [key] = useState(randomName);
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
    <ChooseChat
      title={t('forward_to')}
      choose={(chat) => void forward(chat)}
      busy={busy}
      failure={failure}
      close={close}
    />
  );
}
