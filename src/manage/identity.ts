/** Defines the name, descriptions and commands of the management bot in every language. */
import { scopeKey } from '../rules/commands.js';
import { languages } from '../rules/identity_texts.js';
import type { ManagementIdentity } from '../store/bots/management.js';
import { menuOf } from './commands.js';
import type { TextKey } from './texts.js';
import { texts } from './texts.js';

/** Returns the text for each language. English is also the default for languages without texts. */
const inEach = <T>(key: (language: string) => string, of: (language: keyof typeof texts) => T) =>
  Object.fromEntries([
    [key(''), of('en')],
    ...languages.map((language) => [key(language), of(language)] as const),
  ]);

const textIn = (key: TextKey) =>
  inEach(
    (language) => language,
    (language) => texts[language][key],
  );

export const managementIdentity = (username: string): ManagementIdentity => ({
  username,
  names: textIn('bot_name'),
  descriptions: textIn('bot_description'),
  shortDescriptions: textIn('bot_short_description'),
  commands: inEach(
    (language) => `${scopeKey({ type: 'default' })}|${language}`,
    (language) => menuOf(texts[language]),
  ),
});
