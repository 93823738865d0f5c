/** Shows a code block with the name of its language, colours, and a button that copies the code. */
import { type ReactNode, useEffect, useState } from 'react';
import { copyText } from '../clipboard.js';
import type { Part } from '../code/colours.js';
import type { Highlighter } from '../code/highlighter.js';
import { attempt } from '../failures.js';
import { say } from '../notes.js';
import { t } from '../words.js';
import { Icon } from './icons.js';

let highlighter: Highlighter | undefined;

/** Loads the highlighter when it is first needed, and returns the coloured parts of the code. */
async function find(language: string, code: string): Promise<readonly Part[] | null> {
  highlighter ??= (await import('../code/highlighter.js')).highlighter;
  return highlighter.find(language, code);
}

/**
 * Returns the code with its parts in colour. The parts contain only lengths, so the text that is shown is always the
 * given code.
 */
function coloured(code: string, parts: readonly Part[]): ReactNode[] {
  let at = 0;
  const drawn = parts.map(([length, colour]) => {
    const from = at;
    at += length;
    const text = code.slice(from, at);
    return colour ? (
      <span className={`in-${colour}`} key={from}>
        {text}
      </span>
    ) : (
      text
    );
  });
  return [...drawn, code.slice(at)];
}

/**
 * Returns the code, with colours as soon as its parts are known. While a bot appends to the code, the earlier parts
 * keep their colours, so that the code does not flicker. If the highlighter cannot be loaded, the code has no colours.
 */
function useColours(language: string, code: string): ReactNode {
  const [last, setLast] = useState<{ code: string; parts: readonly Part[] } | null>(null);
  const known = highlighter?.known(language, code);
  useEffect(() => {
    if (!language || known !== undefined) return undefined;
    let here = true;
    find(language, code).then(
      (parts) => here && parts && setLast({ code, parts }),
      () => {},
    );
    return () => {
      here = false;
    };
  }, [language, code, known]);
  const parts = known ?? (last && code.startsWith(last.code) ? last.parts : null);
  return parts ? coloured(code, parts) : code;
}

export function CodeBlock({ language = '', code }: { language: string | undefined; code: string }) {
  const shown = useColours(language, code);
  const copy = async () => {
    await copyText(code);
    say(t('copied'));
  };
  return (
    <span className="code-block">
      <span className="code-head">
        <bdi>{language}</bdi>
        <button
          type="button"
          aria-label={t('copy_code')}
          title={t('copy_code')}
          onClick={() => attempt(copy)}
        >
          <Icon name="copy" size={16} />
        </button>
      </span>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: long lines are scrolled by the keyboard too */}
      <pre tabIndex={0} dir="ltr">
        {shown}
      </pre>
    </span>
  );
}
