/**
 * Compares answers with the types of the Bot API (`@gramio/types`): writes the answers as literals, and type-checks the
 * literals.
 */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll } from 'vitest';
import { onMethodAnswer } from './results.js';
import { temporaryFolder } from './servers.js';

const installed = (path: string) => fileURLToPath(new URL(`../../node_modules/${path}`, import.meta.url));

export interface Recorded {
  /** The name of a Bot API method, or `Update`. */
  readonly name: string;
  readonly value: unknown;
}

/**
 * The keys of an answer, and the texts that select a member of a union. Answers with the same shape are compared only
 * once.
 */
function shapeOf(value: unknown, key = ''): unknown {
  if (Array.isArray(value)) return [...new Set(value.map((each) => JSON.stringify(shapeOf(each))))].sort();
  if (typeof value !== 'object' || value === null)
    return ['type', 'status'].includes(key) ? value : value === null ? null : typeof value;
  return Object.entries(value).map(([name, inner]) => [name, shapeOf(inner, name)]);
}

/** Keeps the last answer of each shape, and at most 1,000 shapes. */
export class Recorder {
  readonly #kept = new Map<string, Recorded>();

  add(name: string, value: unknown): void {
    if (this.#kept.size < 1_000) this.#kept.set(`${name} ${JSON.stringify(shapeOf(value))}`, { name, value });
  }

  get answers(): readonly Recorded[] {
    return [...this.#kept.values()];
  }
}

/**
 * The type check of an answer allows additional fields. It allows neither missing fields nor fields of another type.
 */
const head = (types: string) => `import type { APIMethodReturn, APIMethods, TelegramUpdate } from '${types}';
type Fixed<T> = T extends object ? { readonly [Key in keyof T]: Fixed<T[Key]> } : T;
type Result<Name> = Fixed<
  Name extends keyof APIMethods ? APIMethodReturn<Name> : Name extends 'Update' ? TelegramUpdate : never>;
`;

/** Returns a text for each answer that does not match the types of the Bot API. Each text ends with the answer. */
export async function differencesFromBotApi(answers: readonly Recorded[]): Promise<string[]> {
  const folder = temporaryFolder();
  const file = join(folder, 'answers.ts');
  const lines = answers.map(({ name, value }, i) => {
    const literal = JSON.stringify(value);
    return `const v${i} = ${literal} as const; export const a${i}: Result<'${name}'> = v${i};`;
  });
  const start = head(installed('@gramio/types/out/index.js'));
  writeFileSync(file, start + lines.join('\n'));
  const args = ['--noEmit', '--strict', '--skipLibCheck', '--pretty', 'false', file];
  const compiler = installed('typescript/bin/tsc');
  const output = await new Promise<string>((resolve) => {
    const options = { cwd: folder, maxBuffer: 64 * 1024 ** 2 };
    execFile(process.execPath, [compiler, ...args], options, (_, stdout, stderr) => resolve(stdout + stderr));
  });
  const first = start.split('\n').length;
  return output
    .split(/^(?=\S)/m)
    .filter(Boolean)
    .map((text) => {
      const line = /^answers\.ts\((\d+),/.exec(text)?.[1];
      const answer = line === undefined ? undefined : answers[Number(line) - first];
      const reason = text
        .trim()
        .split('\n')
        .at(-1)
        ?.replace(/^.*error TS\d+:/, '')
        .trim();
      return answer ? `${answer.name}: ${reason} ${JSON.stringify(answer.value)}` : text;
    });
}

/** Methods that the Bot API does not have, or has under another name. */
const others: Readonly<Record<string, string | null>> = {
  confirmUpdates: null,
  deleteWebhookRoute: null,
  getWebhookRoutes: null,
  setWebhookRoute: null,
  createPost: null,
  editPost: null,
  getPost: null,
  getChatMembersCount: 'getChatMemberCount',
  kickChatMember: 'banChatMember',
};

/**
 * If there is no error, `getWebhookInfo` returns its error fields as null (interface §2). The Bot API omits such
 * fields.
 */
const withoutNulls = (info: object) =>
  Object.fromEntries(Object.entries(info).filter(([, value]) => value !== null));

/**
 * Records the answers to methods, and the updates that polls return, during the tests of one file. Call this while the
 * test file is loaded.
 */
export function recordAnswers(): Recorder {
  const recorder = new Recorder();
  const take = (method: string, result: unknown) => {
    const name = others[method] === undefined ? method : others[method];
    if (method === 'getUpdates') for (const update of result as object[]) recorder.add('Update', update);
    else if (method === 'getWebhookInfo') recorder.add(method, withoutNulls(result as object));
    else if (name !== null) recorder.add(name, result);
  };
  beforeAll(() => onMethodAnswer(take));
  afterAll(() => onMethodAnswer());
  return recorder;
}
