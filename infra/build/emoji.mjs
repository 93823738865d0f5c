/**
 * The data of the emoji picker, as the application loads them: emoji with their names in the interface's languages, so that
 * they are found and read out in the person's own.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Languages of the picker's own data. */
const whole = ['en', 'ru'];
/** Names of the Unicode Consortium are laid over the Russian ones; Tatar has none yet but those of countries. */
const over = ['hy', 'kk', 'tg', 'tt', 'uz'];

const readJson = (...parts) => JSON.parse(readFileSync(join(...parts), 'utf8'));
/** Tables differ in whether they say that a character is to be drawn in colour. */
const bare = (emoji) => emoji.replaceAll('\ufe0f', '');

/** Two letters of a region are its flag. */
function regionOf(emoji) {
  const codes = [...emoji].map((char) => char.codePointAt(0) - 0x1f1e6);
  const letters = codes.length === 2 && codes.every((code) => code >= 0 && code < 26);
  return letters ? String.fromCharCode(...codes.map((code) => code + 65)) : null;
}

/** The name of an emoji and words that it is found by; null where the language has no name for it. */
function nameIn(known, regions) {
  return (emoji) => {
    const region = regionOf(emoji);
    if (region !== null) {
      const name = regions.of(region);
      return name === undefined || name === region ? null : [name];
    }
    const own = known[bare(emoji)];
    if (own?.tts) return [own.tts[0], ...(own.default ?? []).filter((word) => word !== own.tts[0])];
    // A person with red hair is a person and red hair.
    const parts = emoji.split('\u200d').map((part) => known[bare(part)]?.tts?.[0]);
    return parts.length > 1 && parts.every((part) => part !== undefined) ? [parts.join(': ')] : null;
  };
}

/** Files of the folder `emoji` of `target`; `modules` is where the data are installed. */
export function writeEmoji(modules, target) {
  const from = join(modules, 'emojibase-data');
  // The picker shows names and groups; the rest of the data is left out, which is three quarters of it.
  const keep = ({ emoji, label, tags, group, subgroup, order, version, skins }) => ({
    ...{ emoji, label, tags, group, subgroup, order, version },
    ...(skins ? { skins: skins.map(({ emoji: one, tone }) => ({ emoji: one, tone })) } : {}),
  });
  const read = (language) => readJson(from, language, 'data.json').map(keep);
  for (const language of whole) {
    const to = join(target, 'emoji', language);
    mkdirSync(to, { recursive: true });
    writeFileSync(join(to, 'data.json'), JSON.stringify(read(language)));
    writeFileSync(join(to, 'messages.json'), readFileSync(join(from, language, 'messages.json')));
  }
  const shown = read('ru').filter(({ group }) => group !== undefined);
  for (const language of over) {
    const { annotations } = readJson(
      modules,
      'cldr-annotations-full/annotations',
      language,
      'annotations.json',
    );
    const regions = new Intl.DisplayNames(language, { type: 'region', fallback: 'none' });
    const name = nameIn(annotations.annotations ?? {}, regions);
    const names = shown.flatMap(({ emoji }) => {
      const words = name(emoji);
      return words === null ? [] : [[emoji, words]];
    });
    writeFileSync(join(target, 'emoji', `${language}.json`), JSON.stringify(Object.fromEntries(names)));
  }
}
