/**
 * Shows pictures, videos, sound and files in messages. Media from another host are loaded only when the person asks for
 * them.
 */
import { type ReactNode, type SyntheticEvent, useState } from 'react';
import { fileUrl } from '../api.js';
import { attempt } from '../failures.js';
import { Cell, useCell } from '../signal.js';
import type { FileRef, MediaKind, Message, ObjectKind, Post } from '../types.js';
import { t } from '../words.js';
import { Icon } from './icons.js';
import { Spinner, useFile } from './ui.js';

export interface Medium {
  kind: MediaKind;
  file: FileRef;
  spoiler: boolean;
}

/** Returns the media file of a message, or undefined for a text. */
export function mediumOf(message: Message): Medium | undefined {
  const spoiler = message.has_media_spoiler === true;
  const photo = message.photo?.at(-1);
  if (photo) return { kind: 'photo', file: photo, spoiler };
  const note = message.video_note;
  if (note)
    return { kind: 'video_note', file: { ...note, width: note.length, height: note.length }, spoiler };
  if (message.sticker) return { kind: 'sticker', file: message.sticker, spoiler };
  for (const kind of ['animation', 'video', 'audio', 'voice', 'document'] as const) {
    const file = message[kind];
    if (file) return { kind, file, spoiler };
  }
  return undefined;
}

export const mediumOfPost = ({ media, has_media_spoiler: covered }: Post): Medium | undefined =>
  media && media.type !== 'poll' ? { kind: media.type, file: media, spoiler: covered === true } : undefined;

/**
 * Returns the name of a kind of media, for lines of text that cannot show media. Some kinds are shown by `file_name`
 * instead.
 */
export const mediumName = (kind: MediaKind | ObjectKind, file_name?: string): string =>
  ['document', 'venue', 'contact', 'dice'].includes(kind) && file_name
    ? file_name
    : kind === 'poll' && file_name
      ? `${t('media_poll')} · ${file_name}`
      : t(`media_${kind}`);

export function sizeText(bytes: number): string {
  if (bytes < 1_024) return `${bytes} B`;
  const [size, unit] =
    bytes < 1_048_576
      ? [bytes / 1_024, 'KB']
      : bytes < 1_073_741_824
        ? [bytes / 1_048_576, 'MB']
        : [bytes / 1_073_741_824, 'GB'];
  return `${size < 10 ? size.toFixed(1) : Math.round(size)} ${unit}`;
}

const lengthText = (seconds: number) =>
  `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
export const hostOf = (url: string) => (URL.canParse(url) ? new URL(url).host : '');
export const isSafe = (url: string) =>
  URL.canParse(url) && ['https:', 'http:'].includes(new URL(url).protocol);

/** The hosts from which the person has agreed to load media. Forgotten when the page is closed. */
export const trusted = new Cell<ReadonlySet<string>>(new Set());

export const trustHost = (host: string): void => trusted.set(new Set([...trusted.value, host]));

function Foreign({
  file,
  kind,
  children,
}: {
  file: FileRef;
  kind: MediaKind;
  children: (url: string) => ReactNode;
}) {
  const hosts = useCell(trusted);
  const url = file.url ?? '';
  const host = hostOf(url);
  if (!isSafe(url)) return <p className="muted">{t('media_unavailable')}</p>;
  if (hosts.has(host)) return <>{children(url)}</>;
  return (
    <button type="button" className="foreign" onClick={() => trustHost(host)}>
      <Icon name={kind === 'photo' ? 'photo' : 'play'} size={28} />
      <strong>{t(`media_${kind}`)}</strong>
      <small>{t('load_from', { host })}</small>
    </button>
  );
}

function Picture({ url, file, alt, open }: { url: string; file: FileRef; alt: string; open: () => void }) {
  const [broken, setBroken] = useState(false);
  if (broken) return <p className="muted">{t('media_unavailable')}</p>;
  return (
    <button type="button" className="picture" aria-label={t('open_picture')} onClick={open}>
      <img
        src={url}
        alt={alt}
        referrerPolicy="no-referrer"
        width={file.width || undefined}
        height={file.height || undefined}
        onError={() => setBroken(true)}
      />
    </button>
  );
}

/**
 * Reserves a space with the same aspect ratio as the picture, so that other content does not move when the picture is
 * loaded.
 */
const room = ({ width, height }: FileRef) => ({
  aspectRatio: width && height ? `${width} / ${height}` : '4 / 3',
});

function Stored({ file, children }: { file: FileRef; children: (url: string) => ReactNode }) {
  const { url, failed } = useFile(`/api/files/${file.file_id}`);
  if (failed) return <p className="muted">{t('media_unavailable')}</p>;
  if (url === '')
    return (
      <span className="media-room" style={room(file)}>
        <Spinner />
      </span>
    );
  return <>{children(url)}</>;
}

/** Shows the thumbnail of a file, if it has one. Reserves space for the thumbnail while it is loading. */
function Thumbnail({ file: { thumbnail } }: { file: FileRef }) {
  const { url } = useFile(thumbnail && `/api/files/${thumbnail.file_id}`);
  return thumbnail ? (
    <img className="thumbnail" src={url || undefined} alt="" style={room(thumbnail as FileRef)} />
  ) : null;
}

interface OnDemandProps {
  medium: Medium;
  /**
   * Opens the file in another place, for instance in the viewer. If undefined, the file is shown in the place of this
   * button.
   */
  open?: () => void;
  children: (url: string) => ReactNode;
}

/** Shows a button that loads a large file. */
function OnDemand({ medium, open, children }: OnDemandProps) {
  const [wanted, setWanted] = useState(false);
  const { file, kind } = medium;
  if (wanted) return <Stored file={file}>{children}</Stored>;
  const details = [
    file.duration ? lengthText(file.duration) : '',
    file.file_size ? sizeText(file.file_size) : '',
  ];
  return (
    <button
      type="button"
      className={kind === 'audio' ? 'foreign sound' : 'foreign'}
      onClick={open ?? (() => setWanted(true))}
    >
      <Thumbnail file={file} />
      <Icon name="play" size={28} />
      <strong>{file.title ?? file.file_name ?? t(`media_${kind}`)}</strong>
      <small>{details.filter(Boolean).join(' · ')}</small>
    </button>
  );
}

/** Saves a file. If it is on another host, opens it in a new tab instead, because a page cannot save such a file. */
export async function save(file: FileRef, name: string): Promise<void> {
  await attempt(async () => {
    const link = document.createElement('a');
    if (file.url !== undefined)
      Object.assign(link, { target: '_blank', rel: 'noopener noreferrer nofollow' });
    link.href = file.url ?? (await fileUrl(`/api/files/${file.file_id}`));
    link.download = file.file_name ?? name;
    link.click();
  });
}

function FileCard({ file }: { file: FileRef }) {
  const inner = (
    <>
      <span className="file-icon">
        <Icon name="file" />
        <Thumbnail file={file} />
      </span>
      <span className="file-text">
        <strong>{file.file_name ?? t('media_document')}</strong>
        <small>{file.file_size ? sizeText(file.file_size) : hostOf(file.url ?? '')}</small>
      </span>
    </>
  );
  if (file.url === undefined)
    return (
      <button type="button" className="file" onClick={() => void save(file, 'file')}>
        {inner}
      </button>
    );
  return isSafe(file.url) ? (
    <a className="file" href={file.url} target="_blank" rel="noopener noreferrer nofollow">
      {inner}
    </a>
  ) : (
    <span className="file">{inner}</span>
  );
}

/**
 * Makes the browser find the length of a recording by seeking to its end, because the file does not contain its length.
 * Without the length, people could not seek in the recording.
 */
function findLength({ currentTarget: audio }: SyntheticEvent<HTMLAudioElement>): void {
  if (audio.duration !== Number.POSITIVE_INFINITY) return;
  audio.ontimeupdate = () => {
    audio.ontimeupdate = null;
    audio.currentTime = 0;
  };
  audio.currentTime = 1e9;
}

function Player({ url, kind }: { url: string; kind: MediaKind }) {
  if (kind === 'animation')
    return <video src={url} autoPlay loop muted playsInline aria-label={t('media_animation')} />;
  if (kind === 'video' || kind === 'video_note')
    // biome-ignore lint/a11y/useMediaCaption: media from people has no captions
    return <video src={url} controls playsInline aria-label={t(`media_${kind}`)} />;
  // biome-ignore lint/a11y/useMediaCaption: media from people has no captions
  return <audio src={url} controls aria-label={t(`media_${kind}`)} onLoadedMetadata={findLength} />;
}

interface MediaProps {
  medium: Medium;
  alt: string;
  /** Opens the viewer. */
  open: () => void;
}

export function Media({ medium, alt, open }: MediaProps) {
  const [hidden, setHidden] = useState(medium.spoiler);
  const { kind, file } = medium;
  const { set_name } = file;
  if (kind === 'document') return <FileCard file={file} />;
  if (hidden)
    return (
      <button type="button" className="foreign" onClick={() => setHidden(false)}>
        <Icon name="eye" size={28} />
        <strong>{t('spoiler')}</strong>
      </button>
    );
  const show = (url: string) =>
    kind === 'sticker' ? (
      <img className="sticker" src={url} alt={file.emoji ?? alt} title={set_name} />
    ) : kind === 'photo' ? (
      <Picture url={url} file={file} alt={alt} open={open} />
    ) : (
      <Player url={url} kind={kind} />
    );
  if (file.url !== undefined)
    return (
      <Foreign file={file} kind={kind}>
        {show}
      </Foreign>
    );
  if (kind === 'video_note')
    return (
      <div className="video-note">
        <OnDemand medium={medium}>{show}</OnDemand>
      </div>
    );
  if (kind === 'sticker')
    return (
      <div className="sticker-box">
        <Stored file={file}>{show}</Stored>
        {set_name !== undefined && <small>{set_name}</small>}
      </div>
    );
  const small = kind === 'photo' || kind === 'voice' || (kind === 'animation' && (file.file_size ?? 0) < 5e6);
  if (small) return <Stored file={file}>{show}</Stored>;
  return (
    <OnDemand medium={medium} open={kind === 'video' ? open : undefined}>
      {show}
    </OnDemand>
  );
}
