/** The emoji picker, loaded when first opened; its data come from this service. */
import { EmojiPicker, type EmojiPickerListEmojiProps, type EmojiPickerListRowProps } from 'frimousse';
import { type CSSProperties, useEffect, useRef } from 'react';
import { createPortal } from 'react-dom';
import { language, t } from '../words.js';

interface EmojiPanelProps {
  choose: (emoji: string) => void;
  close: () => void;
  /** Where the button is that opened it, in the window; without it the panel stands where it is written. */
  at?: DOMRect | undefined;
}

interface Indexed {
  'aria-rowindex'?: number;
  'aria-colindex'?: number;
}

/** ARIA counts from one, the picker from nothing; it looks its rows up by what it gave them, all but the first. */
const parts = {
  Row: ({ children, ...rest }: EmojiPickerListRowProps & Indexed) => (
    <div {...rest} {...{ 'aria-rowindex': rest['aria-rowindex'] || undefined }}>
      {children}
    </div>
  ),
  Emoji: ({ emoji, ...rest }: EmojiPickerListEmojiProps & Indexed) => (
    <button type="button" {...rest} {...{ 'aria-colindex': (rest['aria-colindex'] ?? 0) + 1 }}>
      {emoji.emoji}
    </button>
  ),
};

const size = { width: 330, height: 340 };

function placeAt({ left, top, bottom }: DOMRect): CSSProperties {
  const above = top - size.height - 8;
  return {
    position: 'fixed',
    left: Math.max(8, Math.min(left, innerWidth - size.width - 8)),
    top: above > 8 ? above : Math.min(bottom + 8, innerHeight - size.height - 8),
    right: 'auto',
    bottom: 'auto',
    margin: 0,
  };
}

export default function EmojiPanel({ choose, close, at }: EmojiPanelProps) {
  const panel = useRef<HTMLDivElement>(null);
  useEffect(() => {
    panel.current?.querySelector('input')?.focus();
    const outside = (event: PointerEvent) => {
      if (panel.current && !panel.current.contains(event.target as Node)) close();
    };
    // The press that opened it is over by then.
    const timer = setTimeout(() => addEventListener('pointerdown', outside));
    return () => {
      clearTimeout(timer);
      removeEventListener('pointerdown', outside);
    };
  }, [close]);
  const shown = (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape closes from wherever the focus is in it
    <div
      className="emoji-panel"
      style={at && placeAt(at)}
      ref={panel}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        event.stopPropagation();
        close();
      }}
    >
      <EmojiPicker.Root
        locale={language.value === 'en' ? 'en' : 'ru'}
        emojibaseUrl="/app/emoji"
        columns={8}
        onEmojiSelect={({ emoji }) => choose(emoji)}
      >
        <EmojiPicker.Search placeholder={t('search_emoji')} aria-label={t('search_emoji')} />
        <EmojiPicker.Viewport>
          <EmojiPicker.Loading>{t('loading')}</EmojiPicker.Loading>
          <EmojiPicker.Empty>{t('nothing_found')}</EmojiPicker.Empty>
          <EmojiPicker.List components={parts} />
        </EmojiPicker.Viewport>
      </EmojiPicker.Root>
    </div>
  );
  return at ? createPortal(shown, document.body) : shown;
}
