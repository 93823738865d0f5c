/** Structured logs, a line of JSON each, to standard output. Nothing that is logged may hold a URL of a call or a token. */
import { type Logger, pino } from 'pino';

export type { Logger };

export function createLog(level: string, role: string): Logger {
  return pino({
    level,
    base: { role, pid: process.pid },
    redact: { paths: ['*.token', 'token', 'authorization', '*.authorization'], censor: '[redacted]' },
  });
}
