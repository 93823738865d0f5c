/** Structured logs to standard output, one line of JSON each. Everything that looks like a token is masked. */
import { type Logger, pino } from 'pino';
import { maskTokens } from '../rules/token.js';

export type { Logger };

/** One destination for all loggers of a process, so that lines never mix. */
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
      // Paths of calls contain tokens, and errors of libraries may contain paths.
      hooks: { streamWrite: maskTokens },
    },
    open(),
  );
}

/** One request in the access log. Has neither path nor headers. */
export interface Access {
  /** Id of the request, also in other log lines and in the answer's `X-Request-Id`. */
  readonly request: string;
  readonly verb: string;
  /** Name of the method, path pattern of the endpoint, or `unknown`. */
  readonly call: string;
  /** 0 when the client disconnected before the answer. */
  readonly status: number;
  readonly ms: number;
  /** The caller, if known. */
  readonly bot?: number;
  readonly user?: number;
}

export interface AccessLog {
  note(access: Access): void;
  /** Writes the buffered lines. */
  close(): void;
}

const flushMs = 100;
const waitingMax = 256;

/** Writes one line per request. Lines are buffered for a moment, because a write costs more than a line. */
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
