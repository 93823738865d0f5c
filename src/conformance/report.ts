/** Formats the results of a run as text. */
import { maskTokens } from '../rules/token.js';
import { type Check, needs } from './check.js';

export interface Outcome {
  readonly subject: string;
  readonly proves: string;
  readonly state: 'passed' | 'failed' | 'skipped';
  /** Why the check failed or was skipped. Tokens are masked. */
  readonly reason?: string;
  readonly ms: number;
}

export interface Report {
  readonly schema: 'petrel-conformance';
  readonly version: 1;
  readonly made_at: string;
  readonly petrel: string;
  readonly url: string;
  readonly bot: number;
  readonly requests: number;
  readonly ms: number;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** The changes that the run could not undo. */
  readonly left: readonly string[];
  readonly checks: readonly Outcome[];
}

const plural = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;

/** Lists every failed and skipped check, and how many checks passed for each subject. */
export function reportText({ checks, left, requests, ms, ...sums }: Report): string {
  const lines = [...new Set(checks.map(({ subject }) => subject))].flatMap((subject) => {
    const own = checks.filter((each) => each.subject === subject);
    const passed = own.filter(({ state }) => state === 'passed').length;
    return [
      `${subject}: ${passed} of ${own.length} passed`,
      ...own
        .filter(({ state }) => state !== 'passed')
        .map(({ proves, state, reason }) => `  ${state}: ${proves}\n    ${reason}`),
    ];
  });
  const total = `${sums.passed} passed, ${sums.failed} failed, ${sums.skipped} skipped`;
  const effort = `${plural(requests, 'request')} in ${(ms / 1_000).toFixed(1)} s`;
  return `${[...lines, ...left, `${total}; ${effort}`].join('\n')}\n`;
}

/** Lists the given checks, each with the conditions under which the check is skipped. */
export function listText(checks: readonly Check[]): string {
  const lines = checks.map(({ subject, proves, needs: own }) => {
    const reasons = own.map((need) => needs[need]).join(', or if ');
    return `${subject}: ${proves}${reasons === '' ? '' : ` (skipped if ${reasons})`}`;
  });
  return `${lines.join('\n')}\n`;
}

/**
 * A secret in a text is recognised by this many of its first characters. A shorter beginning of a secret is not masked,
 * because a thief could not use it.
 */
const recognised = 8;

/**
 * Masks the secrets of the given tokens in a text. Recognises a secret by its first characters, so a secret that is cut
 * off or has further characters after it is masked too.
 */
function maskSecrets(text: string, tokens: readonly string[]): string {
  const starts = tokens.map((token) => token.slice(token.indexOf(':') + 1).slice(0, recognised));
  return starts
    .filter((start) => start.length === recognised)
    .reduce((masked, start) => {
      const [first = '', ...rest] = masked.split(start);
      return [first, ...rest.map((part) => part.replace(/^[\w-]*/, '…'))].join('');
    }, maskTokens(text));
}

/** Returns an error's text, cut to `most` characters and with the given tokens masked. */
export const reasonOf = (error: unknown, most: number, tokens: readonly string[]): string =>
  maskSecrets((error as Error).message, tokens).slice(0, most);
