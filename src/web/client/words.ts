/** Loads the texts of the pages. They exist in seven languages, but only English and the chosen language are loaded. */
import { me } from './session.js';
import { Cell } from './signal.js';
import { en, type Words } from './words/en.js';

export type WordKey = keyof Words;

const english: Partial<Words> = en;

/** The names of the languages, each in the language itself. */
export const languages = {
  en: 'English',
  ru: 'Русский',
  uz: 'Oʻzbekcha',
  tg: 'Тоҷикӣ',
  hy: 'Հայերեն',
  tt: 'Татарча',
  kk: 'Қазақша',
} as const;
export type Language = keyof typeof languages;

const loaders: Record<Exclude<Language, 'en'>, () => Promise<{ words: Words }>> = {
  ru: () => import('./words/ru.js'),
  uz: () => import('./words/uz.js'),
  tg: () => import('./words/tg.js'),
  hy: () => import('./words/hy.js'),
  tt: () => import('./words/tt.js'),
  kk: () => import('./words/kk.js'),
};

const key = 'petrel.language';
export const language = new Cell<Language>('en');
let words: Partial<Words> = en;

const isLanguage = (text: string | null | undefined): text is Language =>
  text !== null && text !== undefined && Object.hasOwn(languages, text);

/**
 * Returns the language of the account. If there is none, returns the language that was chosen in this browser, or the
 * browser's own language.
 */
export function wantedLanguage(): Language {
  let kept: string | null = null;
  try {
    kept = localStorage.getItem(key);
  } catch {
    // If the browser does not allow storage, the chosen language is unknown.
  }
  const own = [me.value?.language_code, kept, ...navigator.languages.map((code) => code.slice(0, 2))];
  return own.find(isLanguage) ?? 'en';
}

export async function setLanguage(chosen: Language, keep: boolean): Promise<void> {
  words = chosen === 'en' ? en : (await loaders[chosen]()).words;
  document.documentElement.lang = chosen;
  try {
    if (keep) localStorage.setItem(key, chosen);
  } catch {
    // If the browser does not allow storage, the choice is lost when the page is closed.
  }
  language.set(chosen);
}

/** Returns the text with the key `name`. Replaces each `{…}` in the text by the value of that name. */
export function t(name: WordKey, values: Readonly<Record<string, string | number>> = {}): string {
  return (words[name] ?? english[name] ?? '').replace(/\{(\w+)\}/g, (whole, value: string) =>
    String(values[value] ?? whole),
  );
}

/** Returns the number of unread messages as the text of a badge, or '' if there are none. */
export const unreadText = (count = 0): string => (count > 99 ? '99+' : count > 0 ? String(count) : '');

const formats = new Map<string, Intl.DateTimeFormat>();
/**
 * Formats a date. If the browser does not know the language, formats the date in digits. Otherwise the browser would
 * show the names of months in another language.
 */
function format(
  name: string,
  options: Intl.DateTimeFormatOptions,
  inDigits: Intl.DateTimeFormatOptions = options,
): Intl.DateTimeFormat {
  const code = language.value;
  const place = `${code} ${name}`;
  let made = formats.get(place);
  if (!made) {
    const known = code === 'en' || Intl.DateTimeFormat.supportedLocalesOf(code).length > 0;
    made = known
      ? new Intl.DateTimeFormat(code === 'en' ? undefined : code, options)
      : new Intl.DateTimeFormat('ru', inDigits);
    formats.set(place, made);
  }
  return made;
}

const dayOf = (date: Date) => date.toDateString();

/** Formats the hour and minute of a time. `seconds` is Unix time. */
export const timeText = (seconds: number): string =>
  format('time', { hour: '2-digit', minute: '2-digit' }).format(seconds * 1_000);

/** Returns "today", "yesterday" or the date, in the person's language. */
export function dayText(seconds: number): string {
  const date = new Date(seconds * 1_000);
  const now = new Date();
  if (dayOf(date) === dayOf(now)) return t('today');
  if (dayOf(date) === dayOf(new Date(now.getTime() - 86_400_000))) return t('yesterday');
  const sameYear = date.getFullYear() === now.getFullYear();
  const year = sameYear ? {} : ({ year: 'numeric' } as const);
  return format(
    sameYear ? 'day' : 'date',
    { day: 'numeric', month: 'long', ...year },
    { day: '2-digit', month: '2-digit', ...year },
  ).format(date);
}

/** Returns the short form of a date for lists. For today, returns the time. */
export function shortDate(seconds: number): string {
  const date = new Date(seconds * 1_000);
  const age = Date.now() - date.getTime();
  if (dayOf(date) === dayOf(new Date())) return timeText(seconds);
  if (age < 6 * 86_400_000)
    return format('weekday', { weekday: 'short' }, { day: '2-digit', month: '2-digit' }).format(date);
  return format('short', { day: 'numeric', month: 'numeric', year: '2-digit' }).format(date);
}

export const fullDate = (seconds: number): string =>
  format(
    'full',
    { dateStyle: 'medium', timeStyle: 'short' },
    { dateStyle: 'short', timeStyle: 'short' },
  ).format(seconds * 1_000);
