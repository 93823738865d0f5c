/**
 * Loads the uWebSockets.js package that runs on this machine, and declares types for the parts that we use. In both
 * packages, a header line with an empty name ends the request head: they ignore the headers after this line and parse
 * the body as another request. Petrel cannot detect such a line. A proxy that other clients share must therefore refuse
 * it.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { httpLimits as limits } from './limits.js';

/** Text for the engine, which encodes strings as UTF-8 and writes bytes unchanged. */
export type EngineText = string | Uint8Array | ArrayBuffer;

/** One reply. Its methods throw after the reply has ended or `onAborted` was called. */
export interface EngineResponse {
  writeStatus(status: EngineText): EngineResponse;
  writeHeader(key: EngineText, value: EngineText): EngineResponse;
  /** Returns false if the kernel did not accept all of the chunk. The engine buffers the rest. */
  write(chunk: EngineText): boolean;
  end(body?: EngineText, closeConnection?: boolean): EngineResponse;
  endWithoutBody(reportedContentLength?: number, closeConnection?: boolean): EngineResponse;
  /**
   * Writes as many bytes as the kernel accepts now. Returns two flags: whether the kernel accepted all of `rest`, and
   * whether the reply is complete.
   */
  tryEnd(rest: EngineText, totalBytes: number): [boolean, boolean];
  getWriteOffset(): number;
  /**
   * Sets the listener that is called when the kernel accepts more bytes. The listener must return false if a write of
   * its own failed, and otherwise true.
   */
  onWritable(listener: (offset: number) => boolean): EngineResponse;
  onAborted(listener: () => void): EngineResponse;
  onData(listener: (chunk: ArrayBuffer, isLast: boolean) => void): EngineResponse;
  /** Stops reading the body from the socket until `resume`. A chunk that was already read still arrives. */
  pause(): void;
  resume(): void;
  getRemoteAddress(): ArrayBuffer;
  getRemoteAddressAsText(): ArrayBuffer;
  cork(write: () => void): EngineResponse;
  close(): EngineResponse;
}

/** The head of a request. It is valid only until the route handler returns. */
export interface EngineRequest {
  getMethod(): string;
  getUrl(): string;
  /** Returns '' or undefined for a request without a query, depending on the engine's version. */
  getQuery(): string | undefined;
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
  /** Closes all sockets immediately and aborts pending replies. */
  close(): TemplatedApp;
}

interface Binding {
  App(): TemplatedApp;
  us_listen_socket_close(socket: ListenSocket): void;
  us_socket_local_port(socket: ListenSocket): number;
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number;
}

export interface Engine {
  readonly name: string;
  readonly version: string;
  /** Why this machine cannot run the current engine. Absent if it can. */
  readonly note?: string;
  /**
   * The size in bytes up to which a request head is always accepted. The older engine keeps at most 4 KiB of a head
   * that arrives in several reads, and drops the connection if the head is larger. The current engine has the maximum
   * that `loadEngine` sets in the environment variable `UWS_HTTP_MAX_HEADERS_SIZE` before it loads the engine.
   */
  readonly headBytesMax: number;
  app(): TemplatedApp;
  closeListenSocket(socket: ListenSocket): void;
  localPort(socket: ListenSocket): number;
  /** An option of `listen`. With this option, `listen` fails if another process listens on the port. */
  readonly exclusivePort: number;
}

const head_bytes_max_older = 4096;

const packages = [
  { alias: 'uws-current', headBytesMax: limits.head_bytes_max },
  { alias: 'uws-older', headBytesMax: head_bytes_max_older },
] as const;

const noBinary = `it has no binary for Node.js ${process.version} on ${process.platform} ${process.arch}`;

function whyNot(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const glibc = /GLIBC_([\d.]+)/.exec(message);
  if (glibc) return `it needs glibc ${glibc[1]}, which is newer than the one of this machine`;
  const code = (error as { code?: unknown } | null)?.code;
  if (code === 'MODULE_NOT_FOUND') return 'it is not installed';
  return noBinary;
}

/**
 * Returns whether the older package loaded its native addon. Without it, the package uses a JavaScript server that
 * crashes on its first request. A native function is recognised by the text `[native code]` in its source.
 */
function isNative(binding: Binding): boolean {
  return /\{\s*\[native code\]\s*\}\s*$/.test(Function.prototype.toString.call(binding.App));
}

/**
 * Reads the file package.json directly, because the `exports` of the current package hide it from `require`. Never
 * throws.
 */
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
    // Ignores the error, because the name and the version are only informative.
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

export class EngineError extends Error {}

/**
 * Loads the current engine, or the older one if the current binary does not run on this machine. Throws an EngineError
 * if neither runs.
 */
export function loadEngine(require: NodeJS.Require = createRequire(import.meta.url)): Engine {
  const reasons: string[] = [];
  process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= String(limits.head_bytes_max);
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
