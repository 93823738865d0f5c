/**
 * Reads what Redis answers over connections that speak RESP2, which all of ours do. The decoder that ioredis brings keeps
 * its place in weak maps, as its compiler made of private fields: it needed four to seven times as long for the same bytes.
 * Whatever looks like anything but RESP2 stays with it.
 */
import { createRequire } from 'node:module';
import decoders from 'ioredis/built/resp/decoder.js';
import RedisParser from 'redis-parser';

/** The one that ioredis brings. */
export const OwnDecoder = decoders.Decoder;
type DecoderOptions = ConstructorParameters<typeof OwnDecoder>[0];

const { ARRAY, BLOB_STRING, NUMBER, SIMPLE_ERROR, SIMPLE_STRING } = decoders.RESP_TYPES;
const carriageReturn = 13;

/** A reply that opens a connection in RESP2; one in RESP3 opens with a map. */
const isOfResp2 = (type: number | undefined) =>
  type === SIMPLE_STRING || type === BLOB_STRING || type === NUMBER || type === ARRAY;

/** Whether bytes are one error and nothing else: a server refuses in the same words, whichever form was asked for. */
const isOneRefusal = (chunk: Buffer) =>
  chunk[0] === SIMPLE_ERROR && chunk.length > 2 && chunk.indexOf(carriageReturn) === chunk.length - 2;

/**
 * Takes the place of ioredis' decoder: decides by the first answer of a connection which of the two reads it, for as long
 * as it stands. Throws on bytes that are no reply.
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

/** Whether a reply tells that a subscription has ended, or that its slot is elsewhere. */
const endsSubscription = (reply: unknown): boolean =>
  reply instanceof Error
    ? reply.message.startsWith('MOVED ')
    : Array.isArray(reply) && String(reply[0]) === 'sunsubscribe';

/**
 * A server that gives a slot away ends its subscriptions unasked, in the words of an answer to SUNSUBSCRIBE. If one was sent just
 * then, ioredis takes the notice for its answer, and has no command left for the answer itself: it reported a "Command queue
 * state error". The two together say no more than that the slot has moved.
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
