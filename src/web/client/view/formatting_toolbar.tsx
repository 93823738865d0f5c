/** Shows the composer's formatting buttons with their keys. */
import { type KeyboardEvent, useRef, useState } from 'react';
import { type Format, formatKeys, formats } from '../model/format_keys.js';
import { formatSamples } from '../model/formats.js';
import { t, type WordKey } from '../words.js';
import { Icon } from './icons.js';

const isMac = /^(?:Mac|iP)/.test(navigator.platform);

/** Returns the keys of a format, written as usual on the person's system. */
export const keysOf = (format: Format): string =>
  isMac ? `⌘${formatKeys[format].replace('Shift+', '⇧')}` : `Ctrl+${formatKeys[format]}`;

export const formatWord = (format: Format): WordKey => `format_${format}`;

interface ToolbarProps {
  format: (format: Format) => void;
  /** Moves the focus back to the text field. */
  leave: () => void;
}

/**
 * Shows the formatting buttons while text is selected. The arrow keys move between the buttons, and Tab leaves the
 * toolbar.
 */
export default function FormattingToolbar({ format, leave }: ToolbarProps) {
  const bar = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState(0);
  const onKey = (event: KeyboardEvent) => {
    const { key } = event;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
    const next = step
      ? (at + step + formats.length) % formats.length
      : { Home: 0, End: formats.length - 1 }[key];
    if (next !== undefined) {
      setAt(next);
      bar.current?.querySelectorAll('button')[next]?.focus();
    } else if (key === 'Escape') leave();
    else return;
    event.preventDefault();
  };
  return (
    <div
      ref={bar}
      className="formatting"
      role="toolbar"
      aria-label={t('formatting')}
      tabIndex={-1}
      onKeyDown={onKey}
      // Keeps the focus in the text field when a button is pressed.
      onMouseDown={(event) => event.preventDefault()}
    >
      {formats.map((one, i) => (
        <button
          key={one}
          type="button"
          className="icon-button"
          tabIndex={i === at ? 0 : -1}
          aria-label={t(formatWord(one))}
          aria-keyshortcuts={`${isMac ? 'Meta' : 'Control'}+${formatKeys[one]}`}
          title={`${t(formatWord(one))} (${keysOf(one)}) ${formatSamples[one]}`}
          onFocus={() => setAt(i)}
          onClick={() => format(one)}
        >
          <Icon name={one} size={20} />
        </button>
      ))}
    </div>
  );
}
