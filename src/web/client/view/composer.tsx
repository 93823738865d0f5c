/** The composer: text, a picture, a reply or an edit, with the commands of a bot. */
import {
  type ClipboardEvent,
  type KeyboardEvent,
  lazy,
  Suspense,
  useEffect,
  useId,
  useRef,
  useState,
} from 'react';
import { call } from '../api.js';
import { reasonOf } from '../failures.js';
import { historyOf } from '../model/chats.js';
import { personName, previewOf, summaryOf } from '../names.js';
import { say } from '../notes.js';
import type { Command, Message } from '../types.js';
import { t } from '../words.js';
import { Icon } from './icons.js';
import { IconButton, lengthOf } from './ui.js';

const EmojiPanel = lazy(() => import('./emoji.js'));

const text_max = 4_096;
const caption_max = 1_024;
/** Drafts of other chats, kept until the page is closed. */
const drafts = new Map<number, string>();

export interface ComposerProps {
  chat: number;
  commands: readonly Command[];
  replyTo: Message | null;
  editing: Message | null;
  done: () => void;
  sent: () => void;
  editLast: () => void;
}

function Suggestions(props: {
  id: string;
  list: readonly Command[];
  at: number;
  choose: (command: string) => void;
}) {
  return (
    <div className="suggestions" id={props.id} role="listbox" aria-label={t('commands')}>
      {props.list.map(({ command, description }, i) => (
        // biome-ignore lint/a11y/useFocusableInteractive: the text field keeps the focus, see aria-activedescendant
        // biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the text field selects
        <div
          key={command}
          id={`${props.id}-${i}`}
          role="option"
          aria-selected={i === props.at}
          onClick={() => props.choose(command)}
        >
          <strong>/{command}</strong> <span>{description}</span>
        </div>
      ))}
    </div>
  );
}

function Context({
  icon,
  title,
  text,
  close,
}: {
  icon: 'reply' | 'edit' | 'photo';
  title: string;
  text: string;
  close: () => void;
}) {
  return (
    <div className="composer-context">
      <Icon name={icon} size={20} />
      <span>
        <strong>{title}</strong>
        <small>{text}</small>
      </span>
      <IconButton icon="close" label={t('cancel')} onClick={close} />
    </div>
  );
}

export function Composer({ chat, commands, replyTo, editing, done, sent, editLast }: ComposerProps) {
  const [text, setText] = useState(drafts.get(chat) ?? '');
  const [photo, setPhoto] = useState<File | null>(null);
  const [emoji, setEmoji] = useState(false);
  const [menu, setMenu] = useState(false);
  const [at, setAt] = useState(0);
  const field = useRef<HTMLTextAreaElement>(null);
  const files = useRef<HTMLInputElement>(null);
  const listId = useId();

  const typed = /^\/(\w*)$/.exec(text)?.[1];
  const prefix = typed ?? (menu ? '' : undefined);
  const suggested =
    prefix === undefined || editing
      ? []
      : commands.filter(({ command }) => command.startsWith(prefix.toLowerCase()));

  useEffect(() => {
    setText(editing ? (editing.text ?? editing.caption ?? '') : (drafts.get(chat) ?? ''));
    setMenu(false);
  }, [chat, editing]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: opening another chat also sets the focus
  useEffect(() => {
    if (!matchMedia('(pointer: coarse)').matches || editing || replyTo) field.current?.focus();
  }, [chat, editing, replyTo]);
  useEffect(() => {
    if (!editing) drafts.set(chat, text);
  }, [chat, text, editing]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the height follows the text
  useEffect(() => {
    const area = field.current;
    if (!area) return;
    area.style.height = 'auto';
    area.style.height = `${Math.min(area.scrollHeight, innerHeight / 3)}px`;
  }, [text]);

  const max = photo ? caption_max : text_max;
  const over = lengthOf(text) - max;
  const empty = text.trim() === '' && !photo;

  async function saveEdit(message: Message) {
    const what = message.text === undefined ? { caption: text } : { text };
    try {
      const path = `/api/chats/${chat}/messages/${message.message_id}`;
      historyOf(chat).put(await call<Message>('PATCH', path, what), false);
      done();
    } catch (error) {
      if (/not modified/.test(reasonOf(error))) done();
      else say(reasonOf(error));
    }
  }

  function submit() {
    if (over > 0) return;
    if (editing) {
      void saveEdit(editing);
      return;
    }
    if (empty) return;
    historyOf(chat).send({ text: text.trim(), photo: photo ?? undefined, replyTo: replyTo ?? undefined });
    setText('');
    setPhoto(null);
    setEmoji(false);
    done();
    sent();
  }

  function choose(command: string) {
    setText('');
    setMenu(false);
    historyOf(chat).send({ text: `/${command}` });
    sent();
    field.current?.focus();
  }

  function insert(piece: string) {
    const area = field.current;
    const [from, to] = [area?.selectionStart ?? text.length, area?.selectionEnd ?? text.length];
    setText(text.slice(0, from) + piece + text.slice(to));
    requestAnimationFrame(() => area?.setSelectionRange(from + piece.length, from + piece.length));
  }

  function onKey(event: KeyboardEvent) {
    if (event.nativeEvent.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (suggested.length > 0 && step) setAt((at + step + suggested.length) % suggested.length);
    else if (suggested.length > 0 && (event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey)))
      choose((suggested[at] ?? suggested[0])?.command ?? '');
    else if (
      event.key === 'Enter' &&
      !event.shiftKey &&
      !event.ctrlKey &&
      !matchMedia('(pointer: coarse)').matches
    )
      submit();
    else if (event.key === 'Escape' && (menu || emoji || replyTo || editing)) {
      setMenu(false);
      setEmoji(false);
      done();
    } else if (event.key === 'ArrowUp' && text === '' && !editing) editLast();
    else return;
    event.preventDefault();
  }

  function onPaste(event: ClipboardEvent) {
    const file = [...event.clipboardData.files].find(({ type }) => type.startsWith('image/'));
    if (!file || editing) return;
    event.preventDefault();
    setPhoto(file);
  }

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
    >
      {suggested.length > 0 && <Suggestions id={listId} list={suggested} at={at} choose={choose} />}
      {emoji && (
        <Suspense fallback={null}>
          <EmojiPanel choose={insert} close={() => setEmoji(false)} />
        </Suspense>
      )}
      {editing && (
        <Context icon="edit" title={t('editing')} text={summaryOf(previewOf(editing))} close={done} />
      )}
      {replyTo && (
        <Context
          icon="reply"
          title={personName(replyTo.from)}
          text={summaryOf(previewOf(replyTo))}
          close={done}
        />
      )}
      {photo && (
        <Context icon="photo" title={t('media_photo')} text={photo.name} close={() => setPhoto(null)} />
      )}
      <div className="composer-row">
        {commands.length > 0 && !editing && (
          <IconButton icon="slash" label={t('commands')} expanded={menu} onClick={() => setMenu(!menu)} />
        )}
        {!editing && <IconButton icon="clip" label={t('attach')} onClick={() => files.current?.click()} />}
        <input
          ref={files}
          type="file"
          accept="image/*"
          hidden
          tabIndex={-1}
          aria-label={t('attach')}
          onChange={(event) => {
            setPhoto(event.target.files?.[0] ?? null);
            event.target.value = '';
            field.current?.focus();
          }}
        />
        <textarea
          ref={field}
          rows={1}
          value={text}
          dir="auto"
          role="combobox"
          aria-expanded={suggested.length > 0}
          aria-controls={suggested.length > 0 ? listId : undefined}
          aria-activedescendant={suggested.length > 0 ? `${listId}-${at}` : undefined}
          aria-label={t('write')}
          placeholder={t('write')}
          onChange={(event) => {
            setText(event.target.value);
            setAt(0);
          }}
          onKeyDown={onKey}
          onPaste={onPaste}
        />
        {max - lengthOf(text) < 200 && <span className={over > 0 ? 'counter over' : 'counter'}>{-over}</span>}
        <IconButton icon="smile" label={t('emoji')} expanded={emoji} onClick={() => setEmoji(!emoji)} />
        <IconButton
          icon={editing ? 'check' : 'send'}
          label={editing ? t('save') : t('send')}
          className="send"
          submit
          disabled={empty || over > 0}
        />
      </div>
    </form>
  );
}
