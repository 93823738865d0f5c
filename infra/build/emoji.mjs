/**
 * Builds the data files of the emoji picker: emoji with names in the application's languages, for search and screen
 * readers.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The languages that the picker's own data has. */
const whole = ['en', 'ru'];
/**
 * The languages that the picker's own data lacks. For each of them, the picker loads its Russian data, and replaces the
 * names with names from the Unicode Consortium. In Tatar, the Consortium has only names of countries so far.
 */
const over = ['hy', 'kk', 'tg', 'tt', 'uz'];

const readJson = (...parts) => JSON.parse(readFileSync(join(...parts), 'utf8'));
/** Removes the variation selector for colour. Only some tables include it. */
const bare = (emoji) => emoji.replaceAll('\ufe0f', '');

/**
 * Returns the region code of a flag emoji, or null for any other emoji. A flag emoji consists of the two letters of its
 * region.
 */
function regionOf(emoji) {
  const codes = [...emoji].map((char) => char.codePointAt(0) - 0x1f1e6);
  const letters = codes.length === 2 && codes.every((code) => code >= 0 && code < 26);
  return letters ? String.fromCharCode(...codes.map((code) => code + 65)) : null;
}

/**
 * Returns a function that gives an emoji's name and search words, or null if the language has no name for the emoji.
 */
function nameIn(known, regions) {
  return (emoji) => {
    const region = regionOf(emoji);
    if (region !== null) {
      const name = regions.of(region);
      return name === undefined || name === region ? null : [name];
    }
    const own = known[bare(emoji)];
    if (own?.tts) return [own.tts[0], ...(own.default ?? []).filter((word) => word !== own.tts[0])];
    // Combines the names of the emoji's parts. For example, a person with red hair becomes "person: red hair".
    const parts = emoji.split('\u200d').map((part) => known[bare(part)]?.tts?.[0]);
    return parts.length > 1 && parts.every((part) => part !== undefined) ? [parts.join(': ')] : null;
  };
}

/** Writes the folder `emoji` below `target`. `modules` is the node_modules folder with the source data. */
export function writeEmoji(modules, target) {
  const from = join(modules, 'emojibase-data');
  // Keeps only the fields that the picker needs. All other fields make up three quarters of the data.
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
