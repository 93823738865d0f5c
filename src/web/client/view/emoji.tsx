/** The emoji picker, loaded when first opened; its data come from this service. */
import { EmojiPicker } from 'frimousse';
import { useEffect, useRef } from 'react';
import { language, t } from '../words.js';

export default function EmojiPanel({
  choose,
  close,
}: {
  choose: (emoji: string) => void;
  close: () => void;
}) {
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
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape closes from wherever the focus is in it
    <div
      className="emoji-panel"
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
          <EmojiPicker.List />
        </EmojiPicker.Viewport>
      </EmojiPicker.Root>
    </div>
  );
}
