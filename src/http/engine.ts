/** Chooses and loads the uWebSockets.js package that this machine can run, and types the parts of it that are used. */
import { createRequire } from 'node:module';
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
  /** Name of the package behind the alias. */
  readonly name: string;
  readonly version: string;
  /** False when the older package runs its pure JavaScript server, which is slow and checks less: warn loudly. */
  readonly native: boolean;
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

/** A short reason, without the paths that the loader's message holds. */
function whyNot(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const glibc = /GLIBC_([\d.]+)/.exec(message);
  if (glibc) return `it needs glibc ${glibc[1]}, which is newer than the one of this machine`;
  const code = (error as { code?: unknown } | null)?.code;
  if (code === 'MODULE_NOT_FOUND') return 'it is not installed';
  return `it has no binary for Node.js ${process.version} on ${process.platform} ${process.arch}`;
}

/** The functions of an addon are compiled; those of the older package's silent fallback have a JavaScript source. */
function isNative(binding: Binding): boolean {
  return /\{\s*\[native code\]\s*\}\s*$/.test(Function.prototype.toString.call(binding.App));
}

/**
 * Loads the current engine where its binary runs, else the older one.
 * Throws when neither package loads. The caller must warn when `native` is false.
 */
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
    const { name, version } = require(`${alias}/package.json`) as { name: string; version: string };
    return {
      name,
      version,
      native: isNative(binding),
      ...(reasons.length > 0 ? { note: reasons.join('; ') } : {}),
      headBytesMax,
      app: () => binding.App(),
      closeListenSocket: (socket) => binding.us_listen_socket_close(socket),
      localPort: (socket) => binding.us_socket_local_port(socket),
      exclusivePort: binding.LIBUS_LISTEN_EXCLUSIVE_PORT ?? 1,
    };
  }
  throw new Error(`no HTTP engine loads (${reasons.join('; ')})`);
}
