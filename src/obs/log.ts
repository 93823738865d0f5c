/** Writes structured logs to stdout, one JSON object per line. Masks everything that looks like a token. */
import { type Logger, pino } from 'pino';
import { maskTokens } from '../rules/token.js';
import { systemTime, type Timer } from '../time.js';

export type { Logger };

/** All loggers of a process write here, so that their lines never interleave. */
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
      // Masks tokens. Paths of calls contain tokens, and errors of libraries may contain paths.
      hooks: { streamWrite: maskTokens },
    },
    open(),
  );
}

/** A line of the access log. It contains neither path nor headers. */
export interface Access {
  /** The request id, which is also in other log lines and in the response header `X-Request-Id`. */
  readonly request: string;
  readonly verb: string;
  /** The method's name, the endpoint's path pattern, or `unknown`. */
  readonly call: string;
  /** The HTTP status. 0 means that the client disconnected before the answer. */
  readonly status: number;
  readonly ms: number;
  readonly bot?: number;
  readonly user?: number;
}

export type AccessLog = ReturnType<typeof createAccessLog>;

const flushMs = 100;
const waitingMax = 256;

/**
 * Creates a log with one line per request. Lines that arrive within a short time are written together, because each
 * write is expensive.
 */
export function createAccessLog(role: string, time = systemTime) {
  let waiting: string[] = [];
  let timer: Timer | undefined;
  const base = { role, pid: process.pid };

  function flush(): void {
    time.cancel(timer);
    timer = undefined;
    if (waiting.length === 0) return;
    open().write(maskTokens(waiting.join('')));
    waiting = [];
  }

  return {
    note(access: Access) {
      waiting.push(
        `${JSON.stringify({ level: 30, time: time.machine(), ...base, ...access, msg: 'request' })}\n`,
      );
      if (waiting.length >= waitingMax) flush();
      else timer ??= time.after(flushMs, flush);
    },
    close: flush,
  };
}
