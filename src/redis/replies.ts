/**
 * Parses RESP2 replies with redis-parser. The decoder of ioredis is four to seven times slower, because its private
 * fields compile to weak maps. Other protocols still use the decoder of ioredis.
 */
import { createRequire } from 'node:module';
import decoders from 'ioredis/built/resp/decoder.js';
import RedisParser from 'redis-parser';

export const OwnDecoder = decoders.Decoder;
type DecoderOptions = ConstructorParameters<typeof OwnDecoder>[0];

const { ARRAY, BLOB_STRING, NUMBER, SIMPLE_ERROR, SIMPLE_STRING } = decoders.RESP_TYPES;
const carriageReturn = 13;

/**
 * The first reply shows which protocol a connection uses: a RESP3 connection starts with a map, and a RESP2 connection
 * does not.
 */
const isOfResp2 = (type: number | undefined) =>
  type === SIMPLE_STRING || type === BLOB_STRING || type === NUMBER || type === ARRAY;

/** Returns whether the reply is a single error. An error has the same form in RESP2 and RESP3. */
const isOneRefusal = (chunk: Buffer) =>
  chunk[0] === SIMPLE_ERROR && chunk.length > 2 && chunk.indexOf(carriageReturn) === chunk.length - 2;

/**
 * Replaces the decoder of ioredis. Chooses the parser of a connection when its first reply arrives. Throws on malformed
 * bytes.
 */
export class Replies {
  readonly #options: DecoderOptions;
  #reader: ((chunk: Buffer) => void) | undefined;

  constructor(options: DecoderOptions) {
    this.#options = options;
  }

  write(chunk: Buffer): void {
    if (this.#reader === undefined) {
      if (isOneRefusal(chunk)) {
        new OwnDecoder(this.#options).write(chunk);
        return;
      }
      this.#reader = isOfResp2(chunk[0]) && this.#keepsBytes() ? this.#quick() : this.#other();
    }
    this.#reader(chunk);
  }

  #keepsBytes(): boolean {
    const types: Partial<Record<number, unknown>> = this.#options.getTypeMapping();
    return types[SIMPLE_STRING] === Buffer && types[BLOB_STRING] === Buffer && types[NUMBER] === undefined;
  }

  #quick(): (chunk: Buffer) => void {
    const parser = new RedisParser({
      returnReply: this.#options.onReply,
      returnError: this.#options.onErrorReply as (error: Error) => void,
      returnFatalError(error) {
        throw error;
      },
      returnBuffers: true,
    });
    return (chunk) => parser.execute(chunk);
  }

  #other(): (chunk: Buffer) => void {
    const decoder = new OwnDecoder(this.#options);
    return (chunk) => decoder.write(chunk);
  }
}

(decoders as { Decoder: unknown }).Decoder = Replies;

interface Answered {
  readonly redis: { readonly commandQueue: { readonly length: number }; emit(event: 'moved'): unknown };
  shiftCommand(reply: unknown): unknown;
}

/** Returns whether a reply reports that a subscription ended or that its slot moved. */
const endsSubscription = (reply: unknown): boolean =>
  reply instanceof Error
    ? reply.message.startsWith('MOVED ')
    : Array.isArray(reply) && String(reply[0]) === 'sunsubscribe';

/**
 * Works around a bug in ioredis. A server that loses a slot sends an unrequested SUNSUBSCRIBE reply. If the client has
 * just sent SUNSUBSCRIBE, ioredis takes the unrequested reply for the reply to this command. The real reply then
 * matches no command, and ioredis fails with "Command queue state error". These replies mean only that the slot has
 * moved.
 */
const handlers = createRequire(import.meta.url)('ioredis/built/DataHandler.js') as {
  readonly default: { readonly prototype: Answered };
};
const answered = handlers.default.prototype;
const { shiftCommand } = answered;
answered.shiftCommand = function (this: Answered, reply) {
  if (this.redis.commandQueue.length > 0 || !endsSubscription(reply)) return shiftCommand.call(this, reply);
  this.redis.emit('moved');
  return null;
};
