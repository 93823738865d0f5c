/** The inline keyboard of a message: each button is free, pending or just answered. */
import { placeOf, press, presses } from '../model/presses.js';
import { say } from '../notes.js';
import { useSignal } from '../signal.js';
import type { Button, Message } from '../types.js';
import { t } from '../words.js';
import { Icon } from './icons.js';
import { safeUrl } from './text.js';

function Key({
  button,
  chat,
  message,
  place,
}: {
  button: Button;
  chat: number;
  message: number;
  place: string;
}) {
  const state = presses.states.get(place);
  if (button.url !== undefined) {
    const url = safeUrl(button.url);
    return (
      <a className="key" href={url} target="_blank" rel="noopener noreferrer nofollow">
        {button.text}
        <Icon name="link" size={14} />
      </a>
    );
  }
  return (
    <button
      type="button"
      className={state ? `key ${state}` : 'key'}
      aria-busy={state === 'pending'}
      onClick={() => {
        if (button.callback_data === undefined) say(t('button_unknown'));
        else void press(chat, message, button.callback_data, place);
      }}
    >
      <span>{button.text}</span>
      {state === 'pending' && <span className="spinner small" aria-hidden="true" />}
      {state === 'answered' && <Icon name="check" size={16} />}
      <span className="sr-only" role="status">
        {state === 'pending' ? t('waiting_for_bot') : state === 'answered' ? t('bot_answered') : ''}
      </span>
    </button>
  );
}

export function Keyboard({ chat, message }: { chat: number; message: Message }) {
  useSignal(presses);
  const rows = message.reply_markup?.inline_keyboard ?? [];
  const id = message.message_id;
  return (
    <div className="keyboard">
      {rows.map((row, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a button is identified by its position
        <div className="keyboard-row" key={i}>
          {row.map((button, j) => {
            const place = placeOf(chat, message, button, i, j);
            return <Key key={place} button={button} chat={chat} message={id} place={place} />;
          })}
        </div>
      ))}
    </div>
  );
}
