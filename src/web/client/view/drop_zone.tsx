/** Accepts files that a person drops or pastes. */
import { type RefObject, useEffect, useRef, useState } from 'react';
import { say } from '../notes.js';
import { t } from '../words.js';
import { Icon } from './icons.js';
import { isCovered } from './ui.js';

const isFolder = (item: DataTransferItem) => item.webkitGetAsEntry()?.isDirectory === true;

/** Returns the dropped or pasted files. If there is a folder among them, shows a note and returns no files. */
function filesOf(data: DataTransfer): File[] {
  if (![...data.items].some(isFolder)) return [...data.files];
  say(t('attach_folder'));
  return [];
}

interface DropZoneProps {
  zone: RefObject<HTMLElement | null>;
  /** Accepts files that are dropped on the zone or pasted anywhere. Null while no files can be added. */
  take: ((files: readonly File[]) => void) | null;
}

/** Passes dropped and pasted files to `take`. Returns whether files are being dragged over the zone. */
function useGivenFiles({ zone, take }: DropZoneProps): boolean {
  const [isOver, setOver] = useState(false);
  const latest = useRef(take);
  latest.current = take;
  useEffect(() => {
    const onDrag = (event: DragEvent) => {
      const { type, target, dataTransfer: data } = event;
      if (!data?.types.includes('Files')) return;
      // Prevents the browser from opening the dropped file instead of the application.
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
      // Ignores files that are pasted together with formatted text. Office programs copy a text together with a picture
      // of the text.
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

/** While files are dragged over the zone, shows that they can be dropped there. */
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
