/** Shows the composer for text, files, replies and edits. It suggests the commands of a bot. */
import { type KeyboardEvent, lazy, useEffect, useId, useRef, useState } from 'react';
import { call } from '../api.js';
import { reasonOf } from '../failures.js';
import { historyOf, tellIn } from '../model/chats.js';
import { draftIn, draftOf, draftsSet, noteDraft, setDraft } from '../model/drafts.js';
import { readMarks, writeMarks } from '../model/marks.js';
import type { VoiceFile } from '../model/recording.js';
import { personName, previewOf, summaryOf } from '../names.js';
import { say } from '../notes.js';
import { useSignal } from '../signal.js';
import type { BotCommand, BotPage, Message } from '../types.js';
import { t } from '../words.js';
import { AskedPage } from './asked_page.js';
import { useFormatting } from './formatting.js';
import { Icon } from './icons.js';
import { useInline } from './inline.js';
import { useMentions } from './mentions.js';
import { type ReplyKeys, ReplyKeysButton, ReplyKeysPanel } from './reply_keyboard.js';
import { IconButton, isCovered, lengthOf, Part } from './ui.js';

const AttachedFiles = lazy(async () => ({ default: (await import('./attachments.js')).AttachedFiles }));
const EmojiPanel = lazy(() => import('./emoji.js'));
const FormattingToolbar = lazy(() => import('./formatting_toolbar.js'));
const InlinePanel = lazy(() => import('./inline_panel.js'));
const Recorder = lazy(() => import('./recorder.js'));
const MentionList = lazy(() => import('./mention_list.js'));

const text_max = 4_096;
const caption_max = 1_024;
/** The maximum number of entities that are sent. The service ignores any others. */
const entities_max = 100;

export interface ComposerProps {
  chat: number;
  /** Whether the chat is a group, in which members can be mentioned. */
  isGroup: boolean;
  /** Opens the scheduled posts. Null if the chat cannot have any. */
  schedule: (() => void) | null;
  commands: readonly BotCommand[];
  /** The profile page of the bot, only in a direct chat with a bot. */
  bot?: BotPage | null;
  /** The reply keyboard that is shown, or null. */
  keys: ReplyKeys | null;
  placeholder?: string | undefined;
  replyTo: Message | null;
  editing: Message | null;
  done: () => void;
  sent: () => void;
  editLast: () => void;
}

/** Shows the menu button of a bot, which opens a Web App. */
function MenuButton({ bot: { username, menu_button } }: { bot: BotPage }) {
  const { text = '', web_app } = menu_button ?? {};
  if (!web_app) return null;
  const sign = () => call<{ url: string }>('POST', `/api/bots/${username}/menu`, { url: web_app.url });
  return (
    <AskedPage title={text} url={web_app.url} inFrame sign={sign}>
      {(ask) => (
        <button type="button" className="button primary menu-button" onClick={ask}>
          <Icon name="play" size={16} />
          <bdi>{text}</bdi>
        </button>
      )}
    </AskedPage>
  );
}

function Suggestions(props: {
  id: string;
  list: readonly BotCommand[];
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
  icon: 'reply' | 'edit';
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

/** Shows the button that lets the person choose files. */
function AttachButton({ shown, choose }: { shown: boolean; choose: (files: readonly File[]) => void }) {
  const field = useRef<HTMLInputElement>(null);
  return (
    <>
      {shown && <IconButton icon="clip" label={t('attach')} onClick={() => field.current?.click()} />}
      <input
        ref={field}
        type="file"
        multiple
        hidden
        tabIndex={-1}
        aria-label={t('attach')}
        onChange={(event) => {
          choose([...(event.target.files ?? [])]);
          event.target.value = '';
        }}
      />
    </>
  );
}

/** Divides the text of the field into the text without marks and the entities that the marks stand for. */
function wordsOf(source: string) {
  const { text, entities } = readMarks(source);
  return { text, entities: entities.length > 0 ? entities.slice(0, entities_max) : undefined };
}

async function saveEdit(chat: number, message: Message, source: string, done: () => void) {
  const { text, entities } = wordsOf(source);
  const what =
    message.text === undefined ? { caption: text, caption_entities: entities } : { text, entities };
  try {
    const path = `/api/chats/${chat}/messages/${message.message_id}`;
    historyOf(chat).put(await call<Message>('PATCH', path, what), false);
    done();
  } catch (error) {
    if (/not modified/.test(reasonOf(error))) done();
    else say(reasonOf(error));
  }
}

/** Matches a text that is a command or the beginning of a command. */
const isCommand = /^\/(\w*)$/;

/**
 * Suggests the commands that begin with `text`, or nothing if `text` is null. `toggle` shows or hides all commands.
 * Escape and a click outside the composer close the list until the text changes.
 */
function useSuggestions(
  commands: readonly BotCommand[],
  text: string | null,
  choose: (command: string) => void,
) {
  const [at, setAt] = useState(0);
  const [menu, setMenu] = useState(false);
  const [closed, setClosed] = useState<string | null>(null);
  const typed = text === closed ? undefined : isCommand.exec(text ?? '')?.[1];
  const prefix = typed ?? (menu && text !== null ? '' : undefined);
  const list =
    prefix === undefined ? [] : commands.filter(({ command }) => command.startsWith(prefix.toLowerCase()));
  const isOpen = list.length > 0;
  const close = () => {
    setMenu(false);
    setClosed(text);
  };
  const toggle = () => (isOpen ? close() : setMenu(true));
  useEffect(() => setClosed((former) => (former === text ? former : null)), [text]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: `close` changes only with the text
  useEffect(() => {
    if (!isOpen) return;
    const onPointer = ({ target }: Event) => {
      if (!(target as Element).closest('.composer')) close();
    };
    document.addEventListener('pointerdown', onPointer);
    return () => document.removeEventListener('pointerdown', onPointer);
  }, [isOpen, text]);
  /** Handles a key press in the text field. Returns whether the list of suggestions used the key. */
  const onKey = ({ key, shiftKey }: KeyboardEvent): boolean => {
    if (!isOpen) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (step) setAt((at + step + list.length) % list.length);
    else if (key === 'Escape') close();
    else if (key === 'Tab' || (key === 'Enter' && !shiftKey)) choose((list[at] ?? list[0])?.command ?? '');
    else return false;
    return true;
  };
  return { id: useId(), list, at, setAt, onKey, isOpen, toggle, close, closeMenu: () => setMenu(false) };
}

const isTouch = () => matchMedia('(pointer: coarse)').matches;

const markedTextOf = ({ text, entities, caption, caption_entities }: Message): string =>
  text === undefined ? writeMarks(caption ?? '', caption_entities) : writeMarks(text, entities);

/**
 * Returns the text in the field, with marks. This is the text of the message that is being edited, or otherwise the
 * draft of the chat, which changes while the person types.
 */
function useText(chat: number, editing: Message | null) {
  const [text, setText] = useState(draftOf(chat));
  useSignal(draftsSet);
  const set = draftIn(chat).sets;
  useEffect(() => {
    if (editing) setText(markedTextOf(editing));
  }, [editing]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: runs again after a change that was not made by typing
  useEffect(() => {
    if (!editing) setText(draftOf(chat));
  }, [chat, editing, set]);
  const change = (typed: string) => {
    setText(typed);
    if (editing) return;
    noteDraft(chat, typed);
    if (typed !== '') tellIn(chat, 'typing');
  };
  return { text, setText: change, set };
}

/**
 * Calls `close` when Escape is pressed, whichever element has the focus. `close` closes the topmost open part of the
 * composer. It is null if no part is open.
 */
function useEscape(close: (() => void) | null) {
  const latest = useRef(close);
  latest.current = close;
  const isOver = close !== null;
  useEffect(() => {
    if (!isOver) return;
    const onEscape = (event: globalThis.KeyboardEvent) => {
      if (event.key !== 'Escape' || event.defaultPrevented || event.isComposing || isCovered()) return;
      event.preventDefault();
      latest.current?.();
    };
    addEventListener('keydown', onEscape);
    return () => removeEventListener('keydown', onEscape);
  }, [isOver]);
}

/** Returns the attached files. Calls `focus` when files are added, and when the last file is removed. */
function useFiles(chat: number, editing: Message | null, focus: () => void) {
  const { tray } = historyOf(chat);
  useSignal(tray);
  const files = editing ? [] : tray.files;
  const count = files.length;
  const former = useRef(count);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the focus moves only if the number of files has changed
  useEffect(() => {
    if (count > former.current || (count === 0 && former.current > 0)) focus();
    former.current = count;
  }, [count]);
  return { tray, files, count };
}

/**
 * Focuses the text field when a reply or an edit begins. On a device without a touch screen, also focuses it when the
 * chat is opened.
 */
function useTextField(editing: Message | null, replyTo: Message | null) {
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (!isTouch() || editing || replyTo) field.current?.focus();
  }, [editing, replyTo]);
  return field;
}

/**
 * Returns functions to call after an inline result was sent or an edit was saved. If the person has changed the text
 * since the call began, these functions keep the new text.
 */
function useLateEnds({
  chat,
  text,
  editing,
  sent,
  done,
}: Pick<ComposerProps, 'chat' | 'editing' | 'sent' | 'done'> & { text: string }) {
  const now = useRef({ text, editing });
  now.current = { text, editing };
  return {
    /** Removes the inline query from the text field after its result was sent. */
    ofInline() {
      const isUnchanged = draftOf(chat) === text;
      if (isUnchanged) setDraft(chat, '');
      sent();
      if (isUnchanged && !now.current.editing) done();
    },
    /** Ends the editing of a message after the edit was saved. */
    ofEdit() {
      if (now.current.text === text) done();
    },
  };
}

/** Returns the state of the composer, and functions that its parts call. */
function useComposer({ chat, isGroup, commands, replyTo, editing, done, sent, editLast }: ComposerProps) {
  const { text, setText, set } = useText(chat, editing);
  const [emoji, setEmoji] = useState(false);
  const field = useTextField(editing, replyTo);
  const { tray, files, count } = useFiles(chat, editing, () => field.current?.focus());
  const suggestions = useSuggestions(commands, editing ? null : text, choose);
  // Sends inline queries only from the window in which the person types.
  const typed = editing || count > 0 || draftIn(chat).isFromElsewhere ? null : text;
  const lateEnds = useLateEnds({ chat, text, editing, sent, done });
  const inline = useInline({ chat, text: typed, replyTo, sent: lateEnds.ofInline });
  const formatting = useFormatting(field);
  const { from, to } = formatting;
  const mentions = useMentions({ chat, field, text: isGroup ? text : null, caret: from === to ? to : null });

  // biome-ignore lint/correctness/useExhaustiveDependencies: closes the list of commands when the text is replaced
  useEffect(() => suggestions.closeMenu(), [editing, set]);

  function finish() {
    setText('');
    sent();
    done();
  }

  function choose(command: string) {
    suggestions.close();
    if (historyOf(chat).send({ text: `/${command}` })) {
      // Removes only the beginning of a command. If the person opened the list of commands with the button, the field
      // may contain another text, which is kept.
      if (isCommand.test(text)) setText('');
      sent();
    }
    field.current?.focus();
  }

  const words = readMarks(text);
  const left = (count > 0 ? caption_max : text_max) - lengthOf(words.text);
  const isEmpty = words.text.trim() === '' && count === 0;

  function submit() {
    if (left < 0 || (isEmpty && !editing)) return;
    if (editing) return void saveEdit(chat, editing, text, lateEnds.ofEdit);
    if (!historyOf(chat).send({ ...wordsOf(text.trim()), files, replyTo: replyTo ?? undefined })) return;
    tray.set([]);
    setEmoji(false);
    finish();
  }

  function onKey(event: KeyboardEvent) {
    const { key } = event;
    if (event.nativeEvent.isComposing) return;
    if ([suggestions, mentions, inline, formatting].some((part) => part.onKey(event))) event.preventDefault();
    else if (key === 'Enter' && !event.shiftKey && !event.ctrlKey && !isTouch()) submit();
    else if (key === 'ArrowUp' && text === '' && !editing) editLast();
    else return;
    event.preventDefault();
  }

  useEscape(
    emoji ? () => setEmoji(false) : count > 0 ? () => tray.set([]) : (replyTo ?? editing) ? done : null,
  );

  return {
    field,
    text,
    setText,
    tray,
    count,
    emoji,
    setEmoji,
    suggestions,
    inline,
    formatting,
    mentions,
    left,
    isEmpty,
    submit,
    choose,
    onKey,
  };
}

interface TextFieldProps {
  placeholder?: string | undefined;
  own: ReturnType<typeof useComposer>;
}

/** Sets the height of a text field to the height of its text, up to a third of the window. */
function fitHeight(area: HTMLTextAreaElement | null): void {
  if (!area) return;
  area.style.height = 'auto';
  area.style.height = `${Math.min(area.scrollHeight, innerHeight / 3)}px`;
}

/** Shows the text field, which grows with its text. Its keys also control the list of suggestions. */
function TextField({ own, placeholder }: TextFieldProps) {
  const { field, text, setText, inline, mentions, formatting } = own;
  const suggestions = [mentions, inline].find(({ isOpen }) => isOpen) ?? own.suggestions;
  const open = suggestions.isOpen;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the height depends on the text
  useEffect(() => fitHeight(field.current), [text]);
  useEffect(() => {
    const area = field.current;
    if (!area) return;
    let before = area.clientWidth;
    // Adapts the height when the width changes: the window may be resized, and some buttons appear late.
    const observer = new ResizeObserver(() => {
      if (area.clientWidth === before) return;
      before = area.clientWidth;
      requestAnimationFrame(() => fitHeight(area));
    });
    observer.observe(area);
    return () => observer.disconnect();
  }, [field]);

  return (
    <textarea
      ref={field}
      rows={1}
      value={text}
      dir="auto"
      aria-autocomplete="list"
      aria-controls={open ? suggestions.id : undefined}
      aria-activedescendant={open ? `${suggestions.id}-${suggestions.at}` : undefined}
      aria-label={t('write')}
      placeholder={placeholder ?? t('write')}
      onChange={(event) => {
        setText(event.target.value);
        // Reads the selection after this event, because a formatting button changes the text first and the selection
        // afterwards.
        queueMicrotask(formatting.onSelect);
        own.suggestions.setAt(0);
      }}
      onKeyDown={own.onKey}
    />
  );
}

/** Shows the lists and formatting buttons above the text field. */
function Panels({ own }: { own: ReturnType<typeof useComposer> }) {
  const { field, text, emoji, suggestions, inline, mentions, formatting } = own;
  const isListOpen = [suggestions, inline, mentions].some(({ isOpen }) => isOpen);
  const hasToolbar = !isListOpen && !emoji && text.slice(formatting.from, formatting.to).trim() !== '';
  return (
    <>
      {inline.isOpen && (
        <Part>
          <InlinePanel {...inline} />
        </Part>
      )}
      {suggestions.isOpen && <Suggestions {...suggestions} choose={own.choose} />}
      {mentions.isOpen && (
        <Part>
          <MentionList {...mentions} />
        </Part>
      )}
      {hasToolbar && (
        <Part>
          <FormattingToolbar
            format={(format) => void formatting.format(format)}
            leave={() => field.current?.focus()}
          />
        </Part>
      )}
    </>
  );
}

/** Returns whether the browser can record sound. If the page was not loaded securely, `mediaDevices` is missing. */
const canRecord = () => 'MediaRecorder' in window && navigator.mediaDevices !== undefined;

/** Shows the recorder of voice messages instead of the text field and its buttons. */
function VoiceRow({ chat, replyTo, done, sent, close }: ComposerProps & { close: () => void }) {
  const send = ({ file, seconds }: VoiceFile) => {
    const draft = { text: '', files: [file], seconds, replyTo: replyTo ?? undefined };
    if (!historyOf(chat).send(draft)) return false;
    sent();
    done();
    return true;
  };
  return (
    <Part>
      <Recorder send={send} close={close} tell={() => tellIn(chat, 'record_voice')} />
    </Part>
  );
}

interface RowProps {
  props: ComposerProps;
  own: ReturnType<typeof useComposer>;
  keys: ReplyKeys | null;
  record: () => void;
}

/** Shows the text field and the buttons beside it. */
function Row({ props: { bot, commands, editing, placeholder, schedule }, own, keys, record }: RowProps) {
  const { tray, count, emoji, setEmoji, suggestions, left } = own;
  function toggleEmoji() {
    suggestions.close();
    setEmoji(!emoji);
  }
  return (
    <div className="composer-row">
      {bot?.menu_button && !editing && <MenuButton bot={bot} />}
      {commands.length > 0 && !bot?.menu_button && !editing && (
        <IconButton
          icon="slash"
          label={t('commands')}
          expanded={suggestions.isOpen}
          onClick={suggestions.toggle}
        />
      )}
      <AttachButton shown={!editing} choose={(chosen) => tray.add(chosen)} />
      <TextField own={own} placeholder={count > 0 ? t('add_caption') : placeholder} />
      <ReplyKeysButton keys={keys} />
      {left < 200 && <span className={left < 0 ? 'counter over' : 'counter'}>{left}</span>}
      <IconButton icon="smile" label={t('emoji')} expanded={emoji} onClick={toggleEmoji} />
      {schedule && !editing && count < 2 && (
        <IconButton icon="clock" label={t('scheduled_posts')} onClick={schedule} />
      )}
      {own.isEmpty && !editing && canRecord() && (
        <IconButton icon="mic" label={t('record')} onClick={record} />
      )}
      <IconButton
        icon={editing ? 'check' : 'send'}
        label={editing ? t('save') : t('send')}
        className="send"
        submit
        disabled={own.isEmpty || left < 0}
      />
    </div>
  );
}

export function Composer(props: ComposerProps) {
  const { replyTo, editing, done } = props;
  const keys = editing ? null : props.keys;
  const own = useComposer(props);
  const { field, text, setText, tray, count, emoji, setEmoji, suggestions, formatting, mentions } = own;
  const [isRecording, setRecording] = useState(false);
  useEffect(() => {
    if (editing) setRecording(false);
  }, [editing]);

  function stopRecording() {
    setRecording(false);
    requestAnimationFrame(() => field.current?.focus());
  }

  function insert(piece: string) {
    const area = field.current;
    const [from, to] = [area?.selectionStart ?? text.length, area?.selectionEnd ?? text.length];
    setText(text.slice(0, from) + piece + text.slice(to));
    requestAnimationFrame(() => area?.setSelectionRange(from + piece.length, from + piece.length));
  }

  return (
    <form
      className="composer"
      onKeyDown={(event) => {
        const list = [mentions, own.inline, suggestions].find(({ isOpen }) => isOpen);
        if (event.key !== 'Escape' || !list) return;
        event.preventDefault();
        list.close();
      }}
      onBlur={({ currentTarget, relatedTarget }) => {
        if (currentTarget.contains(relatedTarget)) return;
        formatting.close();
        mentions.close();
      }}
      onSubmit={(event) => {
        event.preventDefault();
        own.submit();
      }}
    >
      <Panels own={own} />
      {emoji && (
        <Part>
          <EmojiPanel choose={insert} close={() => setEmoji(false)} />
        </Part>
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
      {count > 0 && (
        <Part>
          <AttachedFiles tray={tray} />
        </Part>
      )}
      {isRecording ? (
        <VoiceRow {...props} close={stopRecording} />
      ) : (
        <Row
          props={props}
          own={own}
          keys={keys}
          record={() => {
            setEmoji(false);
            setRecording(true);
          }}
        />
      )}
      <ReplyKeysPanel keys={keys} />
    </form>
  );
}
