/** Serialises a script call in one pass, because serialisation is the most expensive part of a call in this process. */
import { Command, ReplyError } from 'ioredis';

export type ScriptArg = string | Buffer | number;

const lineEnd = '\r\n';

/**
 * The length prefixes of short arguments, computed once. Concatenating existing strings is cheaper than formatting
 * numbers.
 */
const lengthLines = Array.from({ length: 512 }, (_, size) => `\r\n$${size}\r\n`);
const lengthLine = (size: number) => lengthLines[size] ?? `\r\n$${size}\r\n`;

/** An EVALSHA or EVAL command that returns its reply as Buffers. */
export class ScriptCommand extends Command {
  constructor(verb: 'evalsha' | 'eval', args: ScriptArg[]) {
    // Sets `args` after the constructor of `Command`, because this constructor would flatten nested lists, which takes
    // time.
    super(verb, [], { replyEncoding: null });
    this.args = args as string[];
  }

  /**
   * Returns the same bytes as the parent's method, but faster. The parent's method measures each piece three times and
   * copies each piece separately.
   */
  override toWritable(): Buffer {
    return this.written(true) ?? (this.written(false) as Buffer);
  }

  /**
   * Serialises the command. If `ascii` is true, assumes that all text is ASCII, as in keys and most arguments. A single
   * length check at the end verifies this assumption. Returns null if the assumption is wrong.
   */
  private written(ascii: boolean): Buffer | null {
    const args = this.args as ScriptArg[];
    const pieces: Array<string | Buffer> = [];
    let text = `*${args.length + 1}${lengthLine(this.name.length)}${this.name}`;
    for (const given of args) {
      const arg = typeof given === 'number' ? String(given) : given;
      if (typeof arg === 'string') text += lengthLine(ascii ? arg.length : Buffer.byteLength(arg)) + arg;
      else {
        pieces.push(text + lengthLine(arg.length), arg);
        text = '';
      }
    }
    pieces.push(text + lineEnd);
    let bytes = 0;
    for (const piece of pieces) {
      const size = typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length;
      if (ascii && size !== piece.length) return null;
      bytes += size;
    }
    const out = Buffer.allocUnsafe(bytes);
    const encoding = ascii ? 'latin1' : 'utf8';
    let at = 0;
    for (const piece of pieces)
      at += typeof piece === 'string' ? out.write(piece, at, encoding) : piece.copy(out, at);
    return out;
  }
}

/** The command ASKING. It lets the next command run on a server to which the slot is still being migrated. */
export class AskingCommand extends Command {
  constructor() {
    super('asking', []);
  }
}

export const isReplyError = (error: unknown): error is Error => error instanceof ReplyError;
export const isUnknownScript = (error: unknown): boolean =>
  isReplyError(error) && error.message.startsWith('NOSCRIPT');

/** Runs a script by its hash, which is the first argument. If Redis does not have the script yet, sends its source. */
export async function runScript(
  send: (command: ScriptCommand) => Promise<unknown>,
  source: string,
  args: ScriptArg[],
): Promise<unknown> {
  try {
    return await send(new ScriptCommand('evalsha', args));
  } catch (error) {
    if (!isUnknownScript(error)) throw error;
    return send(new ScriptCommand('eval', [source, ...args.slice(1)]));
  }
}
