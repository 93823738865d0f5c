/**
 * Returns the text of an error for a person. Errors that people can cause are translated. All other errors keep the
 * service's text.
 */
import { ApiFailure } from './api.js';
import { say } from './notes.js';
import { t, type WordKey } from './words.js';

interface Varying {
  readonly word: WordKey;
  readonly before: string;
  readonly name: string;
  readonly after: string;
}

let reasons: Readonly<Record<string, WordKey>> = {};
let varying: readonly Varying[] = [];

// Loads the translations after the page. Until they are loaded, errors keep the service's text.
import('./reasons.js').then(
  (loaded) => {
    reasons = loaded.reasons;
    varying = Object.entries(reasons).flatMap(([text, word]) => {
      const [before = '', name, after = ''] = text.split(/\{(\w+)\}/);
      return name === undefined ? [] : [{ word, before, name, after }];
    });
  },
  () => {},
);

export function reasonOf(error: unknown): string {
  // Shows the application's own text, because the text of a `fetch` error comes from the browser and may be in another
  // language.
  if (error instanceof TypeError) return t('fail_network');
  if (!(error instanceof ApiFailure)) return error instanceof Error ? error.message : String(error);
  const said = error.message;
  const word = Object.hasOwn(reasons, said) ? reasons[said] : undefined;
  if (word !== undefined) return t(word);
  for (const { word, before, name, after } of varying)
    if (said.startsWith(before) && said.endsWith(after) && said.length > before.length + after.length)
      return t(word, { [name]: said.slice(before.length, said.length - after.length) });
  return said;
}

/** Runs an action of the person. If it fails, shows the reason. */
export async function attempt(action: () => Promise<unknown>): Promise<void> {
  try {
    await action();
  } catch (error) {
    say(reasonOf(error));
  }
}
