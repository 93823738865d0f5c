/** Loads the management bot's texts in the seven languages of the interface (§2). Each language has a file. */
import { type Language, languages } from '../rules/identity_texts.js';
import en from './texts/en.json' with { type: 'json' };
import hy from './texts/hy.json' with { type: 'json' };
import kk from './texts/kk.json' with { type: 'json' };
import ru from './texts/ru.json' with { type: 'json' };
import tg from './texts/tg.json' with { type: 'json' };
import tt from './texts/tt.json' with { type: 'json' };
import uz from './texts/uz.json' with { type: 'json' };

export type TextKey = keyof typeof en;
/** The texts in one language. A missing text is a compile error. */
export type ManageTexts = Readonly<Record<TextKey, string>>;

export const texts: Readonly<Record<Language, ManageTexts>> = { ru, en, uz, tg, hy, tt, kk };

export const languageNames: Readonly<Record<Language, string>> = {
  ru: 'Русский',
  en: 'English',
  uz: 'Oʻzbekcha',
  tg: 'Тоҷикӣ',
  hy: 'Հայերեն',
  tt: 'Татарча',
  kk: 'Қазақша',
};

/**
 * Returns the supported language for a profile's language code, for example `ru` or `ru-RU`. English for any other
 * code.
 */
export function languageOf(code: string | null | undefined): Language {
  const [own] = (code ?? '').toLowerCase().split(/[-_]/);
  return languages.find((language) => language === own) ?? 'en';
}

export const textsFor = (code: string | null | undefined): ManageTexts => texts[languageOf(code)];

export type Values = Readonly<Record<string, string>>;

/** Replaces each `{name}` with its value. Placeholders inside a value are not replaced. */
export function fill(text: string, values: Values = {}): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}
