/** Colours code in a worker, so that slow code does not block the page. */
import { scriptUrl } from '../trusted_scripts.js';
import type { Part } from './colours.js';
import { languageOf } from './languages.js';

/** The members of a Worker that the highlighter uses. */
export interface Colourist {
  postMessage(job: { readonly language: string; readonly code: string }): void;
  onmessage: ((event: { readonly data: readonly Part[] }) => void) | null;
  onerror: ((event: never) => void) | null;
  terminate(): void;
}

interface Job {
  readonly key: string;
  readonly language: string;
  readonly code: string;
  readonly done: (parts: readonly Part[] | null) => void;
}

/** How long the worker may take for one piece of code. Malicious code could take very long. */
export const job_ms_max = 2_000;
const waiting_max = 200;
const kept_max = 200;
/**
 * The maximum length of code that is coloured, in UTF-16 code units. No message is longer, because a message has at
 * most 4,096 characters.
 */
export const code_length_max = 8_192;

/**
 * Gives the worker one piece of code at a time, and keeps the latest results. If a piece takes longer than
 * `job_ms_max`, ends the worker, and this piece is never coloured. The next piece starts a new worker.
 */
export class Highlighter {
  readonly #open: () => Colourist;
  /** The parts of each known piece of code. Null if the piece is not coloured. */
  readonly #kept = new Map<string, readonly Part[] | null>();
  readonly #waiting: Job[] = [];
  #worker: Colourist | undefined;
  #isBusy = false;

  constructor(open: () => Colourist) {
    this.#open = open;
  }

  /**
   * Returns the parts of a piece of code. Returns null if the piece is not coloured, and undefined if its parts are not
   * known yet. `name` is the name of the language in the code block.
   */
  known(name: string, code: string): readonly Part[] | null | undefined {
    const language = languageOf(name);
    return language === undefined ? null : this.#kept.get(keyOf(language, code));
  }

  /** Returns the parts of a piece of code, or null if it is not coloured. */
  find(name: string, code: string): Promise<readonly Part[] | null> {
    const language = languageOf(name);
    if (language === undefined) return Promise.resolve(null);
    const key = keyOf(language, code);
    const known = this.#kept.get(key);
    if (known !== undefined) return Promise.resolve(known);
    if (code.length > code_length_max || this.#waiting.length >= waiting_max) return Promise.resolve(null);
    return new Promise((done) => {
      this.#waiting.push({ key, language, code, done });
      this.#next();
    });
  }

  #next(): void {
    const job = this.#isBusy ? undefined : this.#waiting.shift();
    if (job === undefined) return;
    const known = this.#kept.get(job.key);
    if (known !== undefined) {
      job.done(known);
      this.#next();
      return;
    }
    this.#isBusy = true;
    this.#worker ??= this.#open();
    const worker = this.#worker;
    const end = (parts: readonly Part[] | null) => {
      clearTimeout(timer);
      worker.onmessage = null;
      worker.onerror = null;
      if (parts === null) {
        worker.terminate();
        this.#worker = undefined;
      }
      this.#keep(job.key, parts);
      this.#isBusy = false;
      job.done(parts);
      this.#next();
    };
    const timer = setTimeout(() => end(null), job_ms_max);
    worker.onmessage = ({ data }) => end(data);
    worker.onerror = () => end(null);
    worker.postMessage({ language: job.language, code: job.code });
  }

  #keep(key: string, parts: readonly Part[] | null): void {
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined && this.#kept.size >= kept_max) this.#kept.delete(oldest);
    this.#kept.set(key, parts);
  }
}

const keyOf = (language: string, code: string) => `${language} ${code}`;

export const highlighter = new Highlighter(
  () => new Worker(scriptUrl('/app/highlighter.js')) as unknown as Colourist,
);
