/** Shows the files that a person attaches and sends. */
import { useEffect, useRef, useState } from 'react';
import { bytesOf, isVisual, kindOf, type Tray } from '../model/attachments.js';
import type { Outgoing } from '../model/history.js';
import { useCell } from '../signal.js';
import { t } from '../words.js';
import { widthOf } from './album.js';
import { Icon } from './icons.js';
import { sizeText } from './media.js';
import { IconButton } from './ui.js';

/**
 * Returns a blob URL for a file, or '' while the component is drawn for the first time. The URL is revoked when the
 * component is removed.
 */
function useObjectUrl(file: File): string {
  const [url, setUrl] = useState('');
  useEffect(() => {
    const made = URL.createObjectURL(file);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  return url;
}

/** Shows a picture, or the first frame of a video. */
export function Preview({ file }: { file: File }) {
  const url = useObjectUrl(file) || undefined;
  if (kindOf(file) === 'photo') return <img src={url} alt={file.name} />;
  return <video src={url} muted playsInline aria-label={file.name} />;
}

/** Shows the icon, the name and a detail of a file that has no picture. */
export function FileName({ file, detail }: { file: File; detail: string }) {
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

/** Shows the files that are attached to the message being written. The person can remove each of them. */
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

/** Shows the files of a message that is not sent yet and, while it is being sent, how many bytes are uploaded. */
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
