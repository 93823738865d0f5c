/** The command that carries a script call, written in one pass: most of what a call costs this process is this text. */
import { Command } from 'ioredis';

export type ScriptArg = string | Buffer | number;

const lineEnd = '\r\n';

/** Of most arguments: a text that lies ready is joined without being copied. */
const lengthLines = Array.from({ length: 512 }, (_, size) => `\r\n$${size}\r\n`);
const lengthLine = (size: number) => lengthLines[size] ?? `\r\n$${size}\r\n`;

/** EVALSHA or EVAL whose reply stays bytes. */
export class ScriptCommand extends Command {
  constructor(verb: 'evalsha' | 'eval', args: ScriptArg[]) {
    // The parent flattens and inspects what it is given, for callers that pass nested lists: these are flat.
    super(verb, [], { replyEncoding: null });
    this.args = args as string[];
  }

  /** The same bytes as the parent's, which measures each piece three times and copies each by itself. */
  override toWritable(): Buffer {
    return this.written(true) ?? (this.written(false) as Buffer);
  }

  /** Keys and most arguments are ASCII: then one look at all the text serves for their lengths. Null when they were taken for that
   * and are not. */
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

/** Asks a server to serve the next command although the slot is still being moved to it. */
export class AskingCommand extends Command {
  constructor() {
    super('asking', []);
  }
}
