/**
 * Chooses and loads the uWebSockets.js package that this machine can run, and types the parts of it that are used.
 *
 * Both packages end a request head at a header line with an empty name: they do not see the headers behind it, and run the body
 * as a second request. This cannot be detected here, so a proxy that other clients share must refuse such lines.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { limits } from '../limits.js';

/** What the engine takes as text: strings are written as UTF-8, bytes as they are. */
export type EngineText = string | Uint8Array | ArrayBuffer;

/** One reply of the engine. No member may be called after it has ended or `onAborted` has run: they throw. */
export interface EngineResponse {
  writeStatus(status: EngineText): EngineResponse;
  writeHeader(key: EngineText, value: EngineText): EngineResponse;
  /** False when not everything could be handed to the kernel; the engine keeps the rest. */
  write(chunk: EngineText): boolean;
  end(body?: EngineText, closeConnection?: boolean): EngineResponse;
  endWithoutBody(reportedContentLength?: number, closeConnection?: boolean): EngineResponse;
  /** Hands over what the kernel takes at once: [taken whole, reply complete]. */
  tryEnd(rest: EngineText, totalBytes: number): [boolean, boolean];
  getWriteOffset(): number;
  /** The listener answers whether its write succeeded; writing nothing is success. */
  onWritable(listener: (offset: number) => boolean): EngineResponse;
  onAborted(listener: () => void): EngineResponse;
  /** The chunk is emptied when the listener returns. */
  onData(listener: (chunk: ArrayBuffer, isLast: boolean) => void): EngineResponse;
  /** 4 or 16 bytes. */
  getRemoteAddress(): ArrayBuffer;
  getRemoteAddressAsText(): ArrayBuffer;
  cork(write: () => void): EngineResponse;
  close(): EngineResponse;
}

/** One request head of the engine, readable only until its route handler returns. */
export interface EngineRequest {
  /** In lower case. */
  getMethod(): string;
  getUrl(): string;
  /** Without a query '' or undefined, as the version has it. */
  getQuery(): string | undefined;
  /** '' when absent. */
  getHeader(lowerCaseName: string): string;
  forEach(visit: (lowerCaseName: string, value: string) => void): void;
}

export type RouteHandler = (response: EngineResponse, request: EngineRequest) => void;

declare const listenSocket: unique symbol;
export interface ListenSocket {
  readonly [listenSocket]: true;
}

type Route = (pattern: string, handler: RouteHandler) => TemplatedApp;

export interface TemplatedApp {
  readonly get: Route;
  readonly post: Route;
  readonly put: Route;
  readonly patch: Route;
  readonly del: Route;
  readonly head: Route;
  readonly options: Route;
  readonly any: Route;
  listen(
    host: string,
    port: number,
    options: number,
    listening: (socket: ListenSocket | false) => void,
  ): TemplatedApp;
  /** Closes every socket at once; replies that are pending are aborted. */
  close(): TemplatedApp;
}

interface Binding {
  App(): TemplatedApp;
  us_listen_socket_close(socket: ListenSocket): void;
  us_socket_local_port(socket: ListenSocket): number;
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number;
}

export interface Engine {
  /** Name of the installed package, or its alias if its package.json cannot be read. */
  readonly name: string;
  /** 'unknown' when its package.json cannot be read. */
  readonly version: string;
  /** Why the current engine does not run here; absent where it does. */
  readonly note?: string;
  /** Largest request head that always arrives. The older engine keeps at most 4 KiB of a head that comes in
   * several reads and drops the connection beyond. The current one reads `UWS_HTTP_MAX_HEADERS_SIZE` from the
   * environment of the process, which the launcher sets to `limits.head_bytes_max`. */
  readonly headBytesMax: number;
  app(): TemplatedApp;
  closeListenSocket(socket: ListenSocket): void;
  localPort(socket: ListenSocket): number;
  /** Option of `listen` that refuses a port another process listens on. */
  readonly exclusivePort: number;
}

const head_bytes_max_older = 4096;

const packages = [
  { alias: 'uws-current', headBytesMax: limits.head_bytes_max },
  { alias: 'uws-older', headBytesMax: head_bytes_max_older },
] as const;

const noBinary = `it has no binary for Node.js ${process.version} on ${process.platform} ${process.arch}`;

/** A short reason, without the paths that the loader's message holds. */
function whyNot(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const glibc = /GLIBC_([\d.]+)/.exec(message);
  if (glibc) return `it needs glibc ${glibc[1]}, which is newer than the one of this machine`;
  const code = (error as { code?: unknown } | null)?.code;
  if (code === 'MODULE_NOT_FOUND') return 'it is not installed';
  return noBinary;
}

/** The older package silently falls back to a JavaScript server that crashes on its first request. The functions of an addon
 * are compiled, those of that server have a source. */
function isNative(binding: Binding): boolean {
  return /\{\s*\[native code\]\s*\}\s*$/.test(Function.prototype.toString.call(binding.App));
}

/** Reads package.json as a file: `exports` of the current package hides it from `require`. Never throws. */
function describe(require: NodeJS.Require, alias: string): Pick<Engine, 'name' | 'version'> {
  try {
    for (let folder = dirname(require.resolve(alias)); folder !== dirname(folder); folder = dirname(folder)) {
      const file = join(folder, 'package.json');
      const text = readIfThere(file);
      if (text === undefined) continue;
      const { name, version } = JSON.parse(text) as Partial<Pick<Engine, 'name' | 'version'>>;
      if (name !== undefined && version !== undefined) return { name, version };
    }
  } catch {
    // Only names are missing then, and they must not stop a start.
  }
  return { name: alias, version: 'unknown' };
}

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** No package of the engine runs here. The message says why and what to install. */
export class EngineError extends Error {}

/** Loads the current engine where its binary runs, else the older one. Throws an EngineError when neither does. */
export function loadEngine(require: NodeJS.Require = createRequire(import.meta.url)): Engine {
  const reasons: string[] = [];
  for (const { alias, headBytesMax } of packages) {
    let binding: Binding;
    try {
      binding = require(alias) as Binding;
    } catch (error) {
      reasons.push(`${alias}: ${whyNot(error)}`);
      continue;
    }
    if (!isNative(binding)) {
      reasons.push(`${alias}: ${noBinary}`);
      continue;
    }
    return {
      ...describe(require, alias),
      ...(reasons.length > 0 ? { note: reasons.join('; ') } : {}),
      headBytesMax,
      app: () => binding.App(),
      closeListenSocket: (socket) => binding.us_listen_socket_close(socket),
      localPort: (socket) => binding.us_socket_local_port(socket),
      exclusivePort: binding.LIBUS_LISTEN_EXCLUSIVE_PORT ?? 1,
    };
  }
  throw new EngineError(
    `no HTTP engine runs here (${reasons.join('; ')}): use Node.js 22 or 24 with glibc 2.38 or newer (Debian 13, Ubuntu 24.04), or Node.js 20`,
  );
}
