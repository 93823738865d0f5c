/** Structured logs, a line of JSON each, to standard output. Whatever looks like a token is masked on its way out. */
import { type Logger, pino } from 'pino';
import { maskTokens } from '../rules/token.js';

export type { Logger };

/** One for all lines of a process, so that none is written into another. */
let output: ReturnType<typeof pino.destination> | undefined;
function open() {
  output ??= pino.destination({ fd: 1, sync: true });
  return output;
}

export function createLog(level: string, role: string): Logger {
  return pino(
    {
      level,
      base: { role, pid: process.pid },
      redact: { paths: ['*.token', 'token', 'authorization', '*.authorization'], censor: '[redacted]' },
      // Paths of calls hold tokens, and errors of libraries may hold paths.
      hooks: { streamWrite: maskTokens },
    },
    open(),
  );
}

/** What is told of one request; it has neither a path nor a header. */
export interface Access {
  /** names the request in other lines, and in the answer's `X-Request-Id` */
  readonly request: string;
  readonly verb: string;
  /** Name of the method, path of the endpoint as the documents spell it, or `unknown`. */
  readonly call: string;
  /** 0 when the client went before the answer */
  readonly status: number;
  readonly ms: number;
  /** who called, where that is known */
  readonly bot?: number;
  readonly user?: number;
}

export interface AccessLog {
  note(access: Access): void;
  /** Writes what waits. */
  close(): void;
}

const flushMs = 100;
const waitingMax = 256;

/** One line a request. Lines are gathered for a moment and written together: a write costs more than a line. */
export function createAccessLog(role: string): AccessLog {
  let waiting: string[] = [];
  let timer: NodeJS.Timeout | undefined;
  const base = { role, pid: process.pid };

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (waiting.length === 0) return;
    open().write(maskTokens(waiting.join('')));
    waiting = [];
  }

  return {
    note(access) {
      waiting.push(
        `${JSON.stringify({ level: 30, time: Date.now(), ...base, ...access, msg: 'request' })}\n`,
      );
      if (waiting.length >= waitingMax) flush();
      else timer ??= setTimeout(flush, flushMs);
    },
    close: flush,
  };
}
