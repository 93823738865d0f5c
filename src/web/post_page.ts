/** Builds the page of a post. Anybody can read it without scripts and without an account (decision 0075). */
import { existsSync, readFileSync } from 'node:fs';
import { heart } from '../rules/emoji.js';
import { type Language, languages } from '../rules/identity_texts.js';
import { cut } from '../rules/shown_text.js';
import type { PostPages, PublicPost } from '../server/endpoint.js';
import { type Asset, encodedFor, postPolicy, safeHeaders, send, tagOf } from './pages.js';
import { chosenLanguage, postWords } from './post_words.js';

const description_length_max = 200;
/** For this many seconds after a post was edited or deleted, a browser or proxy may still show the old page. */
const page_age_s_max = 60;

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes text for use in an element or in an attribute with quotation marks. */
const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (sign) => entities[sign] ?? '');

/**
 * Returns the date format of a language. If the runtime has no data for the language, returns the format of `en-GB`.
 */
function dateIn(language: Language): Intl.DateTimeFormat {
  const locales = language === 'en' ? ['en-GB'] : [language, 'en-GB'];
  return new Intl.DateTimeFormat(locales, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' });
}

const dates = Object.fromEntries(languages.map((language) => [language, dateIn(language)]));

const meta = (kind: 'name' | 'property', name: string, content: string) =>
  `<meta ${kind}="${name}" content="${escapeHtml(content)}" />`;

function headOf({ title, sign, text, picture }: PublicPost, url: string): string {
  const words = cut(`${sign} ${text}`.replace(/\s+/g, ' ').trim(), description_length_max);
  return [
    `<title>${escapeHtml(title)}</title>`,
    `<link rel="canonical" href="${escapeHtml(url)}" />`,
    meta('name', 'description', words),
    meta('property', 'og:type', 'article'),
    meta('property', 'og:site_name', 'Petrel'),
    meta('property', 'og:title', title),
    meta('property', 'og:description', words),
    meta('property', 'og:url', url),
    ...(picture === undefined ? [] : [meta('property', 'og:image', picture)]),
  ].join('\n    ');
}

const link = (externalId: string, words: string) =>
  `<a class="button" href="/app${externalId === '' ? '' : `#/post/${externalId}`}">${words}</a>`;

function bodyOf(post: PublicPost, externalId: string, language: Language): string {
  const { title, date, sign, text, reactions } = post;
  const words = postWords[language];
  const at = new Date(date * 1_000);
  const counts = reactions.map(
    ({ emoji, count }) => `<li><span>${escapeHtml(emoji === heart ? '❤️' : emoji)}</span> ${count}</li>`,
  );
  return [
    '<article>',
    `<h1 dir="auto">${escapeHtml(title)}</h1>`,
    `<time datetime="${at.toISOString()}">${dates[language]?.format(at)} UTC</time>`,
    ...(sign === '' ? [] : [`<p class="sign" dir="auto" lang="">${escapeHtml(sign)}</p>`]),
    ...(text === '' ? [] : [`<p class="text" dir="auto" lang="">${escapeHtml(text)}</p>`]),
    ...(counts.length === 0 ? [] : [`<ul aria-label="${words.reactions}">${counts.join('')}</ul>`]),
    link(externalId, words.open),
    '</article>',
  ].join('\n      ');
}

const hiddenHead = (title: string) => `<title>${title}</title>\n    <meta name="robots" content="noindex" />`;
const missingHead = (language: Language) => hiddenHead(postWords[language].missing);

function missingBody(externalId: string, language: Language): string {
  const { missing, missing_hint, sign_in } = postWords[language];
  return [
    '<article>',
    `<h1>${missing}</h1>`,
    `<p>${missing_hint}</p>`,
    link(externalId, sign_in),
    '</article>',
  ].join('\n      ');
}

function refusedBody(language: Language): string {
  const { refused, refused_hint } = postWords[language];
  return ['<article>', `<h1>${refused}</h1>`, `<p>${refused_hint}</p>`, '</article>'].join('\n      ');
}

function assetOf(plain: Buffer, encoded: Asset['encoded'], caching: string): Asset {
  return {
    plain,
    encoded,
    tag: tagOf(plain),
    headers: [
      ['Content-Type', 'text/html; charset=utf-8'],
      ['Cache-Control', caching],
      ['Vary', 'Accept-Language, Accept-Encoding'],
      ['Content-Security-Policy', postPolicy],
      ...safeHeaders,
    ],
  };
}

/**
 * Returns the functions that send pages of posts, or undefined if the web application is not built. `baseUrl` has no
 * slash at its end.
 */
export function createPostPage(
  baseUrl: string,
  template = new URL('client/post/template.html', import.meta.url),
): Omit<PostPages, 'find'> | undefined {
  if (!existsSync(template)) return undefined;
  const [start = '', middle = '', end = ''] = readFileSync(template, 'utf8').split(/<!-- (?:head|body) -->/);
  const pageOf = (language: Language, head: string, body: string) =>
    Buffer.from(`${start.replace('lang="en"', `lang="${language}"`)}${head}${middle}${body}${end}`);
  return {
    async show(request, externalId, post) {
      const language = chosenLanguage(request.acceptLanguage);
      const head = post === null ? missingHead(language) : headOf(post, `${baseUrl}/post/${externalId}`);
      const body = post === null ? missingBody(externalId, language) : bodyOf(post, externalId, language);
      const plain = pageOf(language, head, body);
      const encoded = await encodedFor(request, plain);
      if (post === null) send(request, assetOf(plain, encoded, 'no-cache'), 404);
      else send(request, assetOf(plain, encoded, `public, max-age=${page_age_s_max}`));
    },
    // Does not compress this page, so that refusing a request takes little CPU time.
    refuse(request, { code, retryAfter }) {
      const language = chosenLanguage(request.acceptLanguage);
      const head = hiddenHead(postWords[language].refused);
      const { headers, ...page } = assetOf(
        pageOf(language, head, refusedBody(language)),
        new Map(),
        'no-store',
      );
      send(request, { ...page, headers: [...headers, ['Retry-After', String(retryAfter)]] }, code);
    },
  };
}
