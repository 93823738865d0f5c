/** Shows the files that a person attaches and sends, and takes files that the person drops or pastes. */
import { type RefObject, useEffect, useRef, useState } from 'react';
import { bytesOf, isVisual, kindOf, type Tray } from '../model/attachments.js';
import type { Outgoing } from '../model/history.js';
import { say } from '../notes.js';
import { useCell } from '../signal.js';
import { t } from '../words.js';
import { widthOf } from './album.js';
import { Icon } from './icons.js';
import { sizeText } from './media.js';
import { IconButton, isCovered } from './ui.js';

/** Returns a blob URL of a file, or '' in the first frame. The URL is revoked when the component is removed. */
function useObjectUrl(file: File): string {
  const [url, setUrl] = useState('');
  useEffect(() => {
    const made = URL.createObjectURL(file);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  return url;
}

/** Shows the picture. For a video, shows its first frame. */
function Preview({ file }: { file: File }) {
  const url = useObjectUrl(file) || undefined;
  if (kindOf(file) === 'photo') return <img src={url} alt={file.name} />;
  return <video src={url} muted playsInline aria-label={file.name} />;
}

/** Shows the icon, the name and a detail of a file that has no picture. */
function FileName({ file, detail }: { file: File; detail: string }) {
  return (
    <>
      <span className="file-icon">
        <Icon name={['audio', 'voice'].includes(kindOf(file)) ? 'play' : 'file'} />
      </span>
      <span className="file-text">
        <strong dir="auto">{file.name}</strong>
        <small>{detail}</small>
      </span>
    </>
  );
}

/** Shows the files attached to the message being written. The person can remove each of them. */
export function AttachedFiles({ tray }: { tray: Tray }) {
  const list = useRef<HTMLUListElement>(null);
  const { files } = tray;
  const remove = (file: File) => {
    const at = files.indexOf(file);
    tray.set(files.toSpliced(at, 1));
    // Keeps the focus in the list, because the button that had the focus is removed.
    requestAnimationFrame(() => {
      const buttons = list.current?.querySelectorAll('button') ?? [];
      (buttons[at] ?? buttons[at - 1])?.focus();
    });
  };
  return (
    <div className="attached">
      <div className="attached-head">
        <small>{t('attach_count', { n: files.length, size: sizeText(bytesOf(files)) })}</small>
        <IconButton icon="close" label={t('attach_clear')} onClick={() => tray.set([])} />
      </div>
      <ul ref={list} aria-label={t('attachments')}>
        {files.map((file, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the same file may be attached twice
          <li key={`${i} ${file.name}`} className={isVisual(file) ? 'visual' : ''}>
            {isVisual(file) ? <Preview file={file} /> : <FileName file={file} detail={sizeText(file.size)} />}
            <button
              type="button"
              className="attached-remove"
              aria-label={t('remove_file', { name: file.name })}
              title={t('remove_file', { name: file.name })}
              onClick={() => remove(file)}
            >
              <Icon name="close" size={16} />
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Shows the files of a message that is not sent yet. While they are being sent, shows how many bytes are uploaded. */
export function OutgoingFiles({ outgoing, files }: { outgoing: Outgoing; files: readonly File[] }) {
  const uploaded = useCell(outgoing.uploaded);
  const isSending = outgoing.failed === undefined;
  const grid = files.length > 1 && files.every(isVisual);
  return (
    <div className={grid ? 'album' : 'media'}>
      {files.map((file, i) => {
        const bytes = Math.min(file.size, Math.max(0, uploaded - bytesOf(files.slice(0, i))));
        const amount = isSending ? `${sizeText(bytes)} / ${sizeText(file.size)}` : sizeText(file.size);
        return (
          // biome-ignore lint/suspicious/noArrayIndexKey: the files of a message never change
          <div key={i} className={grid ? `tile of${widthOf(i, files.length)}` : 'outgoing-file'}>
            {isVisual(file) ? (
              <>
                <Preview file={file} />
                {isSending && <small className="amount">{amount}</small>}
              </>
            ) : (
              <span className="file">
                <FileName file={file} detail={amount} />
              </span>
            )}
            {isSending && (
              <progress
                aria-label={`${t('sending')}: ${file.name}`}
                aria-valuetext={amount}
                max={file.size}
                value={bytes}
              />
            )}
          </div>
        );
      })}
    </div>
  );
}

const isFolder = (item: DataTransferItem) => item.webkitGetAsEntry()?.isDirectory === true;

/** Returns the dropped or pasted files. If a folder is among them, shows a note and returns no file. */
function filesOf(data: DataTransfer): File[] {
  if (![...data.items].some(isFolder)) return [...data.files];
  say(t('attach_folder'));
  return [];
}

interface DropZoneProps {
  zone: RefObject<HTMLElement | null>;
  /** Takes files that are dropped on the zone or pasted anywhere. Null while no files can be added. */
  take: ((files: readonly File[]) => void) | null;
}

/** Takes dropped and pasted files. Returns whether files are dragged over the zone. */
function useGivenFiles({ zone, take }: DropZoneProps): boolean {
  const [isOver, setOver] = useState(false);
  const latest = useRef(take);
  latest.current = take;
  useEffect(() => {
    const onDrag = (event: DragEvent) => {
      const { type, target, dataTransfer: data } = event;
      if (!data?.types.includes('Files')) return;
      // Prevents the browser from leaving the application to open the dropped file.
      event.preventDefault();
      const hits = latest.current !== null && !isCovered() && zone.current?.contains(target as Node) === true;
      data.dropEffect = hits ? 'copy' : 'none';
      setOver(hits && type === 'dragover');
      if (hits && type === 'drop') latest.current?.(filesOf(data));
    };
    const onLeave = ({ relatedTarget }: DragEvent) => {
      if (relatedTarget === null) setOver(false);
    };
    const onPaste = (event: ClipboardEvent) => {
      const { clipboardData: data, target } = event;
      const isElsewhere = (target as Element).closest('input') !== null || isCovered();
      // Office programs copy a text together with a picture of the text.
      if (!latest.current || isElsewhere || !data?.files.length || data.types.includes('text/rtf')) return;
      event.preventDefault();
      latest.current(filesOf(data));
    };
    const drags = ['dragover', 'drop'] as const;
    for (const type of drags) addEventListener(type, onDrag);
    addEventListener('dragleave', onLeave);
    addEventListener('paste', onPaste);
    return () => {
      for (const type of drags) removeEventListener(type, onDrag);
      removeEventListener('dragleave', onLeave);
      removeEventListener('paste', onPaste);
    };
  }, [zone]);
  return isOver;
}

/** Takes dropped and pasted files. While files are dragged over the zone, shows that they can be dropped there. */
export function DropZone(props: DropZoneProps) {
  if (!useGivenFiles(props)) return null;
  return (
    <div className="drop-zone">
      <p>
        <Icon name="clip" size={34} />
        {t('attach_drop')}
      </p>
    </div>
  );
}
