/**
 * Shows the emoji picker. The picker's code is loaded when it is first opened. The emoji data are loaded from this
 * service and not from another host.
 */
import {
  defaultEmojiDataResolver,
  type EmojiData,
  type EmojiDataResolver,
  EmojiPicker,
  type EmojiPickerListEmojiProps,
  type EmojiPickerListRowProps,
} from 'frimousse';
import { type CSSProperties, useEffect, useMemo, useRef, useState } from 'react';
import { createPortal } from 'react-dom';
import { language, t, type WordKey } from '../words.js';
import '../words/later.js';

interface EmojiPanelProps {
  choose: (emoji: string) => void;
  close: () => void;
  /**
   * The position in the window of the button that opened the panel. If absent, the panel is part of the page layout.
   */
  at?: DOMRect | undefined;
}

interface Indexed {
  'aria-rowindex'?: number;
  'aria-colindex'?: number;
}

/**
 * Corrects the ARIA indices, which must count from one although the picker counts from zero. Increases the indices of
 * emoji by one. Removes the row index zero, but keeps all other row indices, because the picker uses them to find its
 * rows.
 */
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

/** Maps the number of a group in the emoji data to its name. */
const groups: Readonly<Record<number, WordKey>> = {
  0: 'emoji_smileys',
  1: 'emoji_people',
  3: 'emoji_animals',
  4: 'emoji_food',
  5: 'emoji_travel',
  6: 'emoji_activities',
  7: 'emoji_objects',
  8: 'emoji_symbols',
  9: 'emoji_flags',
};

/** The words of each emoji. The first word is its name, and the others are only for the search. */
type Names = Readonly<Record<string, readonly [string, ...string[]]>>;

const capital = (text: string) => text.charAt(0).toLocaleUpperCase() + text.slice(1);

/**
 * Loads the emoji data in a language. Languages other than English and Russian use the Russian data with their own
 * names. An emoji without a name in such a language keeps its Russian name, and the search also finds emoji by Russian
 * names.
 */
const inOwnWords: EmojiDataResolver = async (code, options) => {
  const whole = code === 'en' || code === 'ru';
  const [data, names] = await Promise.all([
    defaultEmojiDataResolver(whole ? code : 'ru', options),
    whole
      ? {}
      : fetch(`/app/emoji/${code}.json`, { signal: options.signal }).then(
          (it) => it.json() as Promise<Names>,
        ),
  ]);
  return {
    ...data,
    locale: code,
    categories: data.categories.map((category) => {
      const word = groups[category.index];
      return word === undefined ? category : { ...category, label: t(word) };
    }),
    emojis: data.emojis.map((emoji) => {
      const [label, ...tags] = (names as Names)[emoji.emoji] ?? [];
      if (label === undefined) return emoji;
      return { ...emoji, label: capital(label), tags: [...tags, emoji.label, ...emoji.tags] };
    }),
  };
};

/**
 * Returns how well an emoji matches the search text: 0 for its exact name, higher for worse matches, 9 for no match.
 */
function rankOf({ label, tags }: EmojiData['emojis'][number], sought: string): number {
  const name = label.toLocaleLowerCase();
  const words = name.split(/[^\p{L}\p{N}]+/u);
  if (name === sought) return 0;
  if (name.startsWith(`${sought} `)) return 1;
  if (words.includes(sought)) return 2;
  const others = tags.map((tag) => tag.toLocaleLowerCase());
  if (others.includes(sought)) return 3;
  if (name.includes(sought)) return 4;
  if (others.some((tag) => tag.startsWith(sought))) return 5;
  return others.some((tag) => tag.includes(sought)) ? 6 : 9;
}

/** The score that the picker gives to an emoji whose name contains the search text. */
const name_score = 10;

/**
 * Returns the emoji that match the search text, the best match first. The picker sorts by category and score, and keeps
 * the order of emoji for which both are equal. Therefore all emoji get the same category and score.
 */
function ranked(data: EmojiData, sought: string): EmojiData {
  const found = data.emojis
    .map((emoji) => ({ emoji, rank: rankOf(emoji, sought) }))
    .filter(({ rank }) => rank < 9)
    .sort((a, b) => a.rank - b.rank);
  const emojis = found.map(({ emoji }) => {
    const inName = emoji.label.toLowerCase().includes(sought);
    return { ...emoji, category: 0, tags: inName ? [] : new Array<string>(name_score).fill(sought) };
  });
  return { ...data, categories: [{ index: 0, label: t('emoji') }], emojis };
}

/**
 * Returns the function that loads the data of a picker. The picker loads new data only for a new locale. The search
 * text is therefore part of the locale: the language, a space, and the search text.
 */
function createResolver(): EmojiDataResolver {
  const loaded = new Map<string, Promise<EmojiData>>();
  return async (locale, options) => {
    const [code = '', ...words] = locale.split(' ');
    const data = loaded.get(code) ?? Promise.resolve(inOwnWords(code, { ...options, signal: undefined }));
    loaded.set(code, data);
    const sought = words.join(' ');
    return sought === '' ? data : ranked(await data, sought);
  };
}

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
  const [search, setSearch] = useState('');
  const resolver = useMemo(createResolver, []);
  useEffect(() => {
    const before = document.activeElement;
    panel.current?.querySelector('input')?.focus();
    return () => {
      // If the focus was in the panel, moves it back to the element that had it before the panel opened.
      if (document.activeElement === document.body && before instanceof HTMLElement)
        before.focus({ preventScroll: true });
    };
  }, []);
  useEffect(() => {
    const outside = (event: PointerEvent) => {
      if (panel.current && !panel.current.contains(event.target as Node)) close();
    };
    // Adds the listener a moment later, because the press that opened the panel would otherwise close it.
    const timer = setTimeout(() => addEventListener('pointerdown', outside));
    return () => {
      clearTimeout(timer);
      removeEventListener('pointerdown', outside);
    };
  }, [close]);
  const shown = (
    <div
      className="emoji-panel"
      role="dialog"
      aria-label={t('emoji')}
      style={at && placeAt(at)}
      ref={panel}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' && event.key !== 'Tab') return;
        event.preventDefault();
        event.stopPropagation();
        close();
      }}
    >
      <EmojiPicker.Root
        locale={`${language.value} ${search.trim().toLowerCase()}`.trim()}
        emojibaseUrl="/app/emoji"
        resolveEmojiData={resolver}
        columns={8}
        onEmojiSelect={({ emoji }) => choose(emoji)}
      >
        <EmojiPicker.Search
          placeholder={t('search_emoji')}
          aria-label={t('search_emoji')}
          value={search}
          onChange={(event) => setSearch(event.target.value)}
        />
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
