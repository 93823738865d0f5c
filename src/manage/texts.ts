/** Texts of the management bot in the seven languages of the interface (§2), one file per language. */
import { type Language, languages } from '../rules/identity_texts.js';
import { en, type ManageTexts } from './texts/en.js';
import { hy } from './texts/hy.js';
import { kk } from './texts/kk.js';
import { ru } from './texts/ru.js';
import { tg } from './texts/tg.js';
import { tt } from './texts/tt.js';
import { uz } from './texts/uz.js';

export const texts: Readonly<Record<Language, ManageTexts>> = { ru, en, uz, tg, hy, tt, kk };

/** The name of each language in that language. */
export const languageNames: Readonly<Record<Language, string>> = {
  ru: 'Русский',
  en: 'English',
  uz: 'Oʻzbekcha',
  tg: 'Тоҷикӣ',
  hy: 'Հայերեն',
  tt: 'Татарча',
  kk: 'Қазақша',
};

/** The supported language of a profile's language code (`ru`, `ru-RU`), else English. */
export function languageOf(code: string | null | undefined): Language {
  const [own] = (code ?? '').toLowerCase().split(/[-_]/);
  return languages.find((language) => language === own) ?? 'en';
}

export const textsFor = (code: string | null | undefined): ManageTexts => texts[languageOf(code)];

export type Values = Readonly<Record<string, string>>;

/** Replaces `{name}` by values. Placeholders inside a value stay. */
export function fill(text: string, values: Values = {}): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}
