/** Handles a role's output. All lines go to its log file, and important lines also to the terminal. */
import { appendFileSync, renameSync } from 'node:fs';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { log_bytes_max, sizeOf } from './files.js';

const warn_level = 40;
/** The maximum number of lines per role that the terminal shows in one time window. */
const shown_lines_max = 10;
const shown_window_ms = 10_000;
const line_length_max = 300;

interface Seen {
  readonly severe: boolean;
  readonly text: string;
}

/**
 * Returns what the terminal shows for a log line: a JSON line with the level warning or higher, or a line of plain text
 * outside a stack trace. Undefined for any other line.
 */
export function summarise(line: string): Seen | undefined {
  if (!line.startsWith('{')) {
    if (!line.trim() || /^\s/.test(line) || line === '}') return undefined;
    return { severe: true, text: line.slice(0, line_length_max) };
  }
  try {
    const { level, msg, err } = JSON.parse(line) as {
      level?: number;
      msg?: string;
      err?: { message?: string };
    };
    if (level === undefined || level < warn_level) return undefined;
    const reason = err?.message && err.message !== msg ? err.message : '';
    const text = [msg, reason].filter(Boolean).join(': ').slice(0, line_length_max);
    return { severe: level > warn_level, text };
  } catch {
    return { severe: true, text: line.slice(0, line_length_max) };
  }
}

export class RoleLog {
  readonly path: string;
  readonly #name: string;
  readonly #show: (line: string) => void;
  #bytes: number;
  #windowStart = 0;
  #shown = 0;
  #lastSevere = '';

  constructor(name: string, path: string, show: (line: string) => void) {
    this.#name = name;
    this.path = path;
    this.#show = show;
    this.#bytes = sizeOf(path);
  }

  get lastSevere(): string {
    return this.#lastSevere;
  }

  reset(): void {
    this.#lastSevere = '';
  }

  follow(stream: Readable): void {
    createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) =>
      this.#take(line),
    );
  }

  #take(line: string): void {
    if (this.#bytes > log_bytes_max) {
      renameSync(this.path, `${this.path}.1`);
      this.#bytes = 0;
    }
    appendFileSync(this.path, `${line}\n`, { mode: 0o600 });
    this.#bytes += Buffer.byteLength(line) + 1;
    const seen = summarise(line);
    if (!seen) return;
    if (seen.severe) this.#lastSevere = seen.text;
    this.#showBounded(`${this.#name}: ${seen.text}`);
  }

  #showBounded(text: string): void {
    const now = performance.now();
    if (now - this.#windowStart > shown_window_ms) {
      this.#windowStart = now;
      this.#shown = 0;
    }
    this.#shown++;
    if (this.#shown <= shown_lines_max) this.#show(text);
    else if (this.#shown === shown_lines_max + 1) this.#show(`${this.#name}: more in ${this.path}`);
  }
}
