declare module 'autocannon' {
  interface Request {
    readonly method: 'GET' | 'POST' | 'DELETE';
    readonly path: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: string;
  }
  interface Options {
    readonly url: string;
    readonly connections: number;
    readonly duration: number;
    readonly requests: ReadonlyArray<Request | { setupRequest(request: object): Request }>;
  }
  interface Result {
    readonly duration: number;
    readonly errors: number;
    readonly non2xx: number;
    readonly requests: { readonly total: number };
    readonly latency: { readonly p50: number; readonly p99: number };
  }
  export default function autocannon(options: Options): Promise<Result>;
}
