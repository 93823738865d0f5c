/** Shows a bot's reply keyboard below the composer, and handles messages with which a bot asks for a reply. */
import { useEffect, useState } from 'react';
import type { History } from '../model/history.js';
import { replyKeyboards } from '../model/reply_keyboards.js';
import { say } from '../notes.js';
import { me } from '../session.js';
import { useSignal } from '../signal.js';
import type { ChatSummary, Message, ReplyKeyboard } from '../types.js';
import { t, type WordKey } from '../words.js';
import { IconButton } from './ui.js';

type ReplyButton = NonNullable<ReplyKeyboard['keyboard']>[number][number];

export interface ReplyKeys {
  readonly keyboard: ReplyKeyboard;
  readonly isOpen: boolean;
  readonly toggle: () => void;
  readonly press: (button: ReplyButton) => void;
}

/**
 * Maps each kind of data that a button can request to the text that says why the application cannot share this data.
 */
const refusals: Readonly<Record<NonNullable<ReplyButton['request']>, WordKey>> = {
  contact: 'cant_share_contact',
  location: 'cant_share_location',
  poll: 'button_unknown',
  users: 'button_unknown',
  chat: 'button_unknown',
  web_app: 'button_unknown',
};

/** Returns whether the person has sent a message after the given message, or is sending one. */
const isAnswered = ({ messages, outgoing }: History, { message_id }: Message): boolean =>
  outgoing.length > 0 || messages.some((one) => one.message_id > message_id && one.from?.id === me.value?.id);

/**
 * Returns the reply keyboard of a chat, and the message that asks for a reply. A one-time keyboard closes after it was
 * used, but can be opened again. In groups, a press of a keyboard button sends a reply to the message that has the
 * keyboard.
 */
export function useReplyKeys(chat: ChatSummary, history: History, sent: () => void) {
  useSignal(replyKeyboards);
  useSignal(history);
  const [choice, setChoice] = useState({ id: 0, isOpen: false });
  useEffect(() => {
    if (chat.type !== 'channel') void replyKeyboards.load(chat.id);
  }, [chat.id, chat.type]);
  const message = replyKeyboards.of(chat.id);
  const keyboard = message?.reply_keyboard;
  if (!message || !keyboard || chat.type === 'channel' || !history.started) return { keys: null, asks: null };
  const { message_id: id } = message;
  const answered = isAnswered(history, message);
  if (!keyboard.keyboard) return { keys: null, asks: keyboard.force_reply && !answered ? message : null };
  const isOpen = choice.id === id ? choice.isOpen : !(keyboard.one_time_keyboard && answered);
  const press = ({ text, request }: ReplyButton) => {
    if (request) return say(t(refusals[request]));
    history.send(chat.type === 'group' ? { text, replyTo: message } : { text });
    if (keyboard.one_time_keyboard) setChoice({ id, isOpen: false });
    sent();
  };
  const keys: ReplyKeys = { keyboard, isOpen, toggle: () => setChoice({ id, isOpen: !isOpen }), press };
  return { keys, asks: null };
}

/**
 * Shows the button that opens and closes the reply keyboard. Shows nothing if the bot has made the keyboard persistent.
 */
export function ReplyKeysButton({ keys }: { keys: ReplyKeys | null }) {
  if (!keys || (keys.keyboard.is_persistent && keys.isOpen)) return null;
  const { isOpen, toggle } = keys;
  const label = isOpen ? t('hide_keyboard') : t('show_keyboard');
  return <IconButton icon="keyboard" label={label} expanded={isOpen} onClick={toggle} />;
}

export function ReplyKeysPanel({ keys }: { keys: ReplyKeys | null }) {
  if (!keys?.isOpen) return null;
  const { keyboard, press } = keys;
  return (
    <section
      className={keyboard.resize_keyboard ? 'reply-keys' : 'reply-keys tall'}
      aria-label={t('bot_keyboard')}
    >
      {keyboard.keyboard?.map((row, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a button is identified by its position
        <div className="keyboard-row" key={i}>
          {row.map((button, j) => (
            <button
              // biome-ignore lint/suspicious/noArrayIndexKey: a button is identified by its position
              key={j}
              type="button"
              className="key"
              dir="auto"
              title={button.request && t(refusals[button.request])}
              onClick={() => press(button)}
            >
              <span>{button.text}</span>
            </button>
          ))}
        </div>
      ))}
    </section>
  );
}
