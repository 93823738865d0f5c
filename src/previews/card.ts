/** Builds a page's preview from the fields in the page's head. All texts are plain, short and on one line. */
import { cut } from '../rules/shown_text.js';
import { maskTokens } from '../rules/token.js';
import type { LinkPreview } from '../store/messages/link_previews.js';
import type { HeadFields } from './head.js';
import { previewLimits as limits } from './limits.js';

/**
 * Separators and control characters become spaces. Format characters (`hidden`) are removed, because they are invisible
 * or change the direction of a text.
 */
const blank = /[\s\p{Cc}\p{Zl}\p{Zp}\u2800]+/gu;
const hidden = /[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]+/g;

const line = (text: string, max: number): string =>
  // The text may end with half a surrogate pair. The conversion to a buffer and back replaces this half.
  cut(maskTokens(Buffer.from(text).toString().replace(hidden, '').replace(blank, ' ').trim()), max);

/** Returns a page's preview, or null if the page has no title. `url` is the page's URL after redirects. */
export function cardOf(url: string, { title, meta }: HeadFields): LinkPreview | null {
  const first = (max: number, ...texts: ReadonlyArray<string | undefined>): string => {
    for (const text of texts) {
      const shown = line(text ?? '', max);
      if (shown !== '') return shown;
    }
    return '';
  };
  const shownTitle = first(
    limits.preview_title_length_max,
    meta.get('og:title'),
    meta.get('twitter:title'),
    title,
  );
  if (shownTitle === '') return null;
  const description = first(
    limits.preview_description_length_max,
    meta.get('og:description'),
    meta.get('twitter:description'),
    meta.get('description'),
  );
  const siteName = first(limits.preview_site_name_length_max, meta.get('og:site_name'));
  return {
    host: new URL(url).host,
    title: shownTitle,
    ...(description !== '' && { description }),
    ...(siteName !== '' && { site_name: siteName }),
  };
}
