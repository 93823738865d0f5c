/** Shows the inline keyboard of a message. A button that calls the bot is idle, pending, or just answered. */
import { lazy, type ReactNode, useState } from 'react';
import { call } from '../api.js';
import { copyText } from '../clipboard.js';
import { reasonOf } from '../failures.js';
import { setDraft } from '../model/drafts.js';
import { placeOf, press, presses } from '../model/presses.js';
import { say } from '../notes.js';
import { go } from '../route.js';
import { useSignal } from '../signal.js';
import type { Button, Message } from '../types.js';
import { t } from '../words.js';
import { AskedPage } from './asked_page.js';
import { Icon, type IconName } from './icons.js';
import { safeUrl } from './text.js';
import { Part } from './ui.js';

const ChooseChat = lazy(async () => ({ default: (await import('./choose_chat.js')).ChooseChat }));

interface KeyProps {
  button: Button;
  chat: number;
  message: Message;
}

const classOf = ({ style }: Button, ...more: Array<string | undefined>) =>
  ['key', style, ...more].filter(Boolean).join(' ');

function CallbackKey({ button, chat, message, place }: KeyProps & { place: string }) {
  const state = presses.states.get(place);
  return (
    <button
      type="button"
      className={classOf(button, state)}
      aria-busy={state === 'pending'}
      onClick={() => {
        if (button.callback_data === undefined) say(t('button_unknown'));
        else void press(chat, message.message_id, button.callback_data, place);
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

/** Shows a button with an icon for its action. */
function ActionKey({ button, icon, act }: { button: Button; icon: IconName; act: () => void }) {
  return (
    <button type="button" className={classOf(button)} onClick={act}>
      <span>{button.text}</span>
      <Icon name={icon} size={14} />
    </button>
  );
}

const copy = (text: string) =>
  void copyText(text).then(
    () => say(t('copied')),
    (error: unknown) => say(reasonOf(error)),
  );

function PageKey({ button, chat, message }: KeyProps) {
  const url = (button.web_app ?? button.login_url)?.url ?? '';
  const path = `/api/chats/${chat}/messages/${message.message_id}/link`;
  return (
    <AskedPage
      title={button.text}
      url={url}
      inFrame={button.web_app !== undefined}
      sign={() => call('POST', path, { url })}
    >
      {(ask) => <ActionKey button={button} icon={button.web_app ? 'play' : 'link'} act={ask} />}
    </AskedPage>
  );
}

/** Shows a button that writes the bot's name and a query into the composer of a chat. */
function QueryKey({ button, chat, message }: KeyProps) {
  const [choosing, setChoosing] = useState(false);
  const here = button.switch_inline_query_current_chat;
  const query = here ?? button.switch_inline_query ?? button.switch_inline_query_chosen_chat?.query ?? '';
  const write = (to: number) => {
    // The keyboard belongs to the inline bot that made the message. In a forward, `via_bot` names the inline bot of the
    // original message, so the keyboard belongs to the sender of the forward.
    const owner = (message.forward_origin ? undefined : message.via_bot) ?? message.from;
    setDraft(to, `@${owner?.username ?? ''} ${query}`);
    go(`chat/${to}`);
  };
  return (
    <>
      <ActionKey
        button={button}
        icon="edit"
        act={() => (here === undefined ? setChoosing(true) : write(chat))}
      />
      {choosing && (
        <Part>
          <ChooseChat
            title={t('choose_chat')}
            choose={({ id }) => {
              setChoosing(false);
              write(id);
            }}
            close={() => setChoosing(false)}
          />
        </Part>
      )}
    </>
  );
}

function Key(props: KeyProps & { place: string }): ReactNode {
  const { button } = props;
  const { url, copy_text } = button;
  if (url !== undefined)
    return (
      <a className={classOf(button)} href={safeUrl(url)} target="_blank" rel="noopener noreferrer nofollow">
        {button.text}
        <Icon name="link" size={14} />
      </a>
    );
  if (button.web_app || button.login_url) return <PageKey {...props} />;
  if (copy_text) return <ActionKey button={button} icon="copy" act={() => copy(copy_text.text)} />;
  const { switch_inline_query: other, switch_inline_query_current_chat: current } = button;
  if ((other ?? current ?? button.switch_inline_query_chosen_chat) !== undefined)
    return <QueryKey {...props} />;
  return <CallbackKey {...props} />;
}

export function Keyboard({ chat, message }: { chat: number; message: Message }) {
  useSignal(presses);
  const rows = message.reply_markup?.inline_keyboard ?? [];
  return (
    <div className="keyboard">
      {rows.map((row, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a button is identified by its position
        <div className="keyboard-row" key={i}>
          {row.map((button, j) => {
            const place = placeOf(chat, message, button, i, j);
            return <Key key={place} button={button} chat={chat} message={message} place={place} />;
          })}
        </div>
      ))}
    </div>
  );
}
