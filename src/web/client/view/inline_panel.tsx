/** Shows the results of a bot above the composer. */
import { useEffect, useRef, useState } from 'react';
import { useCell } from '../signal.js';
import type { InlineResult } from '../types.js';
import { t } from '../words.js';
import { Icon, type IconName } from './icons.js';
import type { InlineState, useInline } from './inline.js';
import { hostOf, isSafe, trusted, trustHost } from './media.js';
import { Spinner, useFile } from './ui.js';

const icons: Readonly<Record<string, IconName>> = {
  photo: 'photo',
  location: 'map',
  venue: 'map',
  contact: 'people',
  document: 'file',
  article: 'link',
};

/** Returns the picture that represents a result: an address on another host, or the path of a stored file. */
function pictureOf({ thumbnail_url, photo, ...result }: InlineResult): { url?: string; path?: string } {
  if (thumbnail_url !== undefined) return { url: thumbnail_url };
  const large = photo?.at(-1);
  if (large?.url !== undefined) return { url: large.url };
  if (large) return { path: `/api/files/${large.file_id}` };
  const small = (result.animation ?? result.video ?? result.document ?? result.audio)?.thumbnail;
  return small ? { path: `/api/files/${small.file_id}` } : {};
}

function ResultPicture({ result }: { result: InlineResult }) {
  const hosts = useCell(trusted);
  const [broken, setBroken] = useState(false);
  const { url, path } = pictureOf(result);
  const { url: stored } = useFile(path);
  const shown = path ? stored : url && isSafe(url) && hosts.has(hostOf(url)) ? url : '';
  return (
    <span className="inline-picture">
      {shown && !broken ? (
        <img src={shown} alt="" referrerPolicy="no-referrer" onError={() => setBroken(true)} />
      ) : (
        <Icon name={icons[result.type] ?? 'play'} size={22} />
      )}
    </span>
  );
}

const nameOf = (result: InlineResult): string => {
  const kind = { gif: 'animation', mpeg4_gif: 'animation', article: 'document' }[result.type] ?? result.type;
  return result.title || t(`media_${kind}` as 'media_photo');
};

/** Shows a button that loads the pictures from the first host that the person has not agreed to yet. */
function LoadPictures({ results }: { results: InlineState['results'] }) {
  const hosts = useCell(trusted);
  const urls = results.flatMap(({ result }) => pictureOf(result).url ?? []).filter(isSafe);
  const host = urls.map(hostOf).find((one) => !hosts.has(one));
  if (host === undefined) return null;
  return (
    <button type="button" className="inline-load" onClick={() => trustHost(host)}>
      <Icon name="photo" size={18} /> {t('load_from', { host })}
    </button>
  );
}

/** Shows the results. The focus stays in the text field, whose keys select a result. */
export default function InlinePanel({
  id,
  state,
  at,
  choose,
  pressButton,
  more,
}: ReturnType<typeof useInline>) {
  const list = useRef<HTMLDivElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls when another result is selected
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: 'nearest' });
  }, [at]);
  if (!state) return null;
  const { bot, results, pending, failure, button } = state;
  const name = `@${bot.username}`;
  const empty = !pending && results.length === 0 && (failure || t('nothing_found'));
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: a press must not take the focus from the text field
    <div className="suggestions inline-panel" onMouseDown={(event) => event.preventDefault()}>
      <div className="inline-head">
        <strong>{name}</strong>
        {state.query === '' && bot.inline_placeholder && <span>{bot.inline_placeholder}</span>}
        {pending && <Spinner />}
      </div>
      {button && (
        <button type="button" className="button inline-button" onClick={() => void pressButton()}>
          <bdi>{button.text}</bdi>
        </button>
      )}
      <LoadPictures results={results} />
      <div
        ref={list}
        id={id}
        className="inline-list"
        role="listbox"
        aria-label={t('inline_results', { name })}
        aria-busy={pending}
        onScroll={({ currentTarget: { scrollTop, clientHeight, scrollHeight } }) => {
          if (scrollTop + clientHeight > scrollHeight - 120) more();
        }}
      >
        {results.map(({ answer, result }, i) => (
          // biome-ignore lint/a11y/useFocusableInteractive: the text field keeps the focus, see aria-activedescendant
          // biome-ignore lint/a11y/useKeyWithClickEvents: Enter in the text field selects
          <div
            key={`${answer} ${result.id}`}
            id={`${id}-${i}`}
            className="inline-result"
            role="option"
            aria-selected={i === at}
            onClick={() => void choose(i)}
          >
            <ResultPicture result={result} />
            <span className="inline-text">
              <strong dir="auto">{nameOf(result)}</strong>
              {result.description && <small dir="auto">{result.description}</small>}
            </span>
          </div>
        ))}
      </div>
      <p className={empty ? 'inline-empty' : 'sr-only'} role="status">
        {empty || ''}
      </p>
    </div>
  );
}
