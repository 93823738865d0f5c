/** Converts script replies to objects. The names and types come from the script's header. */
import type { Script, ValueSpec } from './contract.js';

export type Reply = { status: string } & Record<string, unknown>;

/** Numbers with up to this many digits are exact. */
const digits_max = 15;

/**
 * Parses an integer from bytes, digit by digit. This is several times faster than converting the bytes to a string
 * first.
 */
export function numberOf(raw: unknown): number {
  if (!Buffer.isBuffer(raw) || raw.length === 0 || raw.length > digits_max) return Number(raw);
  let value = 0;
  for (let i = 0; i < raw.length; i++) {
    const digit = (raw[i] as number) - 0x30;
    if (digit < 0 || digit > 9) return Number(raw);
    value = value * 10 + digit;
  }
  return value;
}

function decodeValue(type: ValueSpec['type'], raw: unknown): unknown {
  if (raw === null || raw === undefined) return null;
  switch (type) {
    case 'int':
    case 'int?':
      return numberOf(raw);
    case 'text':
    case 'text?':
      return String(raw);
    case 'flag':
      return numberOf(raw) === 1;
    case 'texts':
      return (raw as unknown[]).map(String);
    default:
      return raw;
  }
}

/** Converts a script's reply. Throws for a status that the header does not declare. */
export function decodeReply(script: Script, reply: unknown): Reply {
  const values = reply as [Buffer, ...unknown[]];
  const status = values[0].toString('latin1');
  const specs = status === 'ok' ? script.ok : script.errors.get(status);
  if (!specs) throw new Error(`${script.name} answered with the undeclared status ${status}`);
  const out: Reply = { status };
  for (let i = 0; i < specs.length; i++) {
    const spec = specs[i] as ValueSpec;
    out[spec.name] = decodeValue(spec.type, values[i + 1]);
  }
  return out;
}
