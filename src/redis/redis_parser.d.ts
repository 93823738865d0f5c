/** Declares types for the parts of redis-parser that Petrel uses. */
declare module 'redis-parser' {
  interface ParserOptions {
    returnReply(reply: unknown): void;
    returnError(error: Error): void;
    returnFatalError(error: Error): void;
    readonly returnBuffers: boolean;
  }

  export default class RedisParser {
    constructor(options: ParserOptions);
    execute(chunk: Buffer): void;
    reset(): void;
  }
}
