/** Shows the scheduled posts of a channel, and schedules the text and the file from the composer. */
import { type FormEvent, type ReactNode, useEffect, useState } from 'react';
import { ApiFailure, call, get } from '../api.js';
import { reasonOf } from '../failures.js';
import { formOf, isVisual } from '../model/attachments.js';
import { historyOf, scheduledIn } from '../model/chats.js';
import { draftOf, setDraft } from '../model/drafts.js';
import { readMarks, writeMarks } from '../model/marks.js';
import { say } from '../notes.js';
import { useCell } from '../signal.js';
import type { MediaKind, Page, ScheduledPost } from '../types.js';
import { fullDate, t } from '../words.js';
import '../words/later.js';
import { FileName, Preview } from './attachments.js';
import { Icon } from './icons.js';
import { mediumName, sizeText } from './media.js';
import { RichText } from './text.js';
import { Confirm, Dialog, Failure, Field, IconButton, lengthOf, Spinner, useFile } from './ui.js';

const minute_ms = 60_000;
const text_max = 4_096;
const caption_max = 1_024;

/** Returns a local time in the format of a date field. */
const fieldOf = (ms: number): string =>
  new Date(ms - new Date(ms).getTimezoneOffset() * minute_ms).toISOString().slice(0, 16);
const secondsOf = (field: string): number => new Date(field).getTime() / 1_000;
const upToMinute = (ms: number): number => Math.ceil(ms / minute_ms) * minute_ms;

const wordsOf = (source: string) => {
  const { text, entities } = readMarks(source.trim());
  return { text, entities };
};

interface TimeFormProps {
  initial: number;
  action: string;
  isValid?: boolean;
  save: (at: string) => Promise<unknown>;
  children?: ReactNode;
}

/** Shows a form with a date and a time. `save` gets both in the format of a date field. */
function TimeForm({ initial, action, isValid = true, save, children }: TimeFormProps) {
  const [at, setAt] = useState(() => fieldOf(initial));
  const [failure, setFailure] = useState('');
  const [isSaving, setSaving] = useState(false);
  const min = fieldOf(Math.min(initial, upToMinute(Date.now() + minute_ms)));
  const max = fieldOf(Date.now() + 364 * 24 * 60 * minute_ms);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setSaving(true);
    setFailure('');
    save(at)
      .catch((error) => setFailure(reasonOf(error)))
      .finally(() => setSaving(false));
  };
  return (
    <form className="stack" onSubmit={submit}>
      {children}
      <label className="field">
        <span className="field-name">{t('schedule_at')}</span>
        <input
          type="datetime-local"
          required
          value={at}
          min={min}
          max={max}
          onChange={(event) => setAt(event.target.value)}
        />
      </label>
      <Failure text={failure} />
      <button type="submit" className="button primary" disabled={isSaving || !isValid}>
        {action}
      </button>
    </form>
  );
}

/** Shows the file of a scheduled post: a picture, or the name and size of any other file. */
function PostFile({ media, path }: { media: NonNullable<ScheduledPost['media']>; path: string }) {
  const isPhoto = media.type === 'photo';
  const { url } = useFile(isPhoto ? `${path}/file` : undefined);
  const kind = media.type as MediaKind;
  if (isPhoto) return <img className="scheduled-picture" src={url || undefined} alt={mediumName(kind)} />;
  return (
    <span className="file">
      <span className="file-icon">
        <Icon name={kind === 'document' ? 'file' : 'play'} />
      </span>
      <span className="file-text">
        <strong dir="auto">{media.file_name ?? mediumName(kind)}</strong>
        <small>{sizeText(media.file_size ?? 0)}</small>
      </span>
    </span>
  );
}

interface ItemProps {
  post: ScheduledPost;
  path: string;
  changed: () => Promise<unknown>;
}

function Edit({ post, path, changed, close }: ItemProps & { close: () => void }) {
  const [source, setSource] = useState(() => writeMarks(post.text, post.entities));
  const length = lengthOf(readMarks(source).text.trim());
  const [min, max] = post.media ? [0, caption_max] : [1, text_max];
  const former = post.publish_at * 1_000;
  const initial = former > Date.now() ? former : upToMinute(Date.now() + minute_ms);
  const save = async (at: string) => {
    // Does not send an unchanged time, because the service would refuse it if it is less than a minute ahead.
    const time = at === fieldOf(former) ? {} : { publish_at: secondsOf(at) };
    await call('PATCH', path, { ...wordsOf(source), ...time });
    await changed();
    close();
  };
  return (
    <TimeForm initial={initial} action={t('save')} isValid={length >= min && length <= max} save={save}>
      {post.media?.type !== 'video_note' && (
        <Field
          label={t(post.media ? 'add_caption' : 'schedule_text')}
          value={source}
          set={setSource}
          max={max}
          multiline
        />
      )}
    </TimeForm>
  );
}

function Item({ post, path, changed }: ItemProps) {
  const [isEditing, setEditing] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const [failure, setFailure] = useState('');
  const run = (action: () => Promise<unknown>) => {
    setFailure('');
    action()
      .catch((error) => setFailure(reasonOf(error)))
      .finally(() => void changed());
  };
  const date = fullDate(post.publish_at);
  return (
    <li className="scheduled-post stack">
      <div className="row">
        <strong className="grow">{date}</strong>
        <IconButton
          icon={isEditing ? 'close' : 'edit'}
          label={isEditing ? t('cancel') : t('schedule_edit', { date })}
          onClick={() => setEditing(!isEditing)}
        />
        <IconButton
          icon="send"
          label={t('schedule_publish', { date })}
          onClick={() => run(() => call('POST', `${path}/publish`))}
        />
        <IconButton icon="trash" label={t('schedule_delete', { date })} onClick={() => setAsking(true)} />
      </div>
      {post.failure !== undefined && (
        <Failure text={t('schedule_failed', { reason: reasonOf(new ApiFailure(400, post.failure)) })} />
      )}
      <Failure text={failure} />
      {post.media && <PostFile media={post.media} path={path} />}
      {isEditing ? (
        <Edit post={post} path={path} changed={changed} close={() => setEditing(false)} />
      ) : post.text === '' ? null : (
        <p className="scheduled-text" dir="auto">
          <RichText text={post.text} entities={post.entities} />
        </p>
      )}
      {isAsking && (
        <Confirm
          title={t('schedule_delete', { date })}
          text={t('schedule_delete_hint')}
          action={t('delete')}
          danger
          act={() => run(() => call('DELETE', path))}
          close={() => setAsking(false)}
        />
      )}
    </li>
  );
}

/** Loads all scheduled posts of a channel, page by page. A channel has only a few of them. */
async function loadAll(path: string): Promise<ScheduledPost[]> {
  const found: ScheduledPost[] = [];
  for (let cursor = ''; ; ) {
    const { items, next_cursor } = await get<Page<ScheduledPost>>(`${path}?limit=100${cursor}`);
    found.push(...items);
    if (next_cursor === undefined) break;
    cursor = `&cursor=${next_cursor}`;
  }
  return found.sort((a, b) => a.publish_at - b.publish_at || a.id - b.id);
}

/** Returns the body of the call that schedules a text, or a file with an optional caption. */
function bodyOf(text: string, file: File | undefined, publish_at: number) {
  const words = wordsOf(text);
  if (file === undefined) return { ...words, publish_at };
  const form = formOf([file], '', undefined, undefined);
  form.append('text', words.text);
  form.append('entities', JSON.stringify(words.entities));
  form.append('publish_at', String(publish_at));
  return form;
}

function NewFile({ file }: { file: File }) {
  if (isVisual(file))
    return (
      <div className="scheduled-new">
        <Preview file={file} />
      </div>
    );
  return (
    <span className="file">
      <FileName file={file} detail={sizeText(file.size)} />
    </span>
  );
}

interface ScheduledProps {
  chat: number;
  close: () => void;
}

export default function Scheduled({ chat, close }: ScheduledProps) {
  const { tray } = historyOf(chat);
  const [text] = useState(() => draftOf(chat).trim());
  const [file] = useState(() => tray.files[0]);
  const path = `/api/chats/${chat}/scheduled_posts`;
  const [posts, setPosts] = useState<readonly ScheduledPost[]>();
  const [failure, setFailure] = useState('');
  const change = useCell(scheduledIn);
  const load = () =>
    loadAll(path).then(
      (found) => {
        setPosts(found);
        setFailure('');
      },
      (error) => setFailure(reasonOf(error)),
    );
  // biome-ignore lint/correctness/useExhaustiveDependencies: loads again after each change in this or another window
  useEffect(() => {
    if (posts === undefined || change.chat === chat) void load();
  }, [change]);
  const schedule = async (at: string) => {
    await call('POST', path, bodyOf(text, file, secondsOf(at)));
    say(t('schedule_done', { date: fullDate(secondsOf(at)) }));
    setDraft(chat, '');
    tray.set([]);
    close();
  };
  return (
    <Dialog title={t('scheduled_posts')} close={close}>
      {(text !== '' || file) && (
        <TimeForm
          initial={upToMinute(Date.now() + 60 * minute_ms)}
          action={t('schedule')}
          isValid={lengthOf(wordsOf(text).text) <= (file ? caption_max : text_max)}
          save={schedule}
        >
          {file && <NewFile file={file} />}
          {text !== '' && (
            <p className="scheduled-text" dir="auto">
              <RichText {...wordsOf(text)} />
            </p>
          )}
        </TimeForm>
      )}
      <Failure text={failure} />
      {posts === undefined && failure === '' && <Spinner />}
      {posts?.length === 0 && text === '' && !file && <p className="muted">{t('schedule_none')}</p>}
      {posts && posts.length > 0 && (
        <ul className="sessions">
          {posts.map((post) => (
            <Item key={post.id} post={post} path={`${path}/${post.id}`} changed={load} />
          ))}
        </ul>
      )}
    </Dialog>
  );
}
