/** Collects the body of one request while it arrives, within a bound of its own and those of all requests together. */
import { totalmem } from 'node:os';
import { limits } from '../limits.js';

const noBody = Buffer.alloc(0);

/** A quarter of the memory that this process may use, within the bounds of `limits`. */
export function bodyRoomBytes(): number {
  const allowed = process.constrainedMemory?.() ?? 0;
  const machine = totalmem();
  const memory = allowed > 0 && allowed < machine ? allowed : machine;
  return Math.min(limits.bodies_bytes_max, Math.max(limits.bodies_bytes_min, Math.floor(memory / 4)));
}

/** What the bodies of one server hold, by whom they come from. */
export class BodyRoom {
  /** All bodies together; those above `limits.body_bytes_max`, which are uploads, get half of it. */
  readonly bytesMax: number;
  /** The bodies of one client address: room for an upload at least. */
  readonly addressBytesMax: number;
  bytes = 0;
  private strangersBytes = 0;
  private readonly addresses = new Map<string, number>();
  private readonly strangers = new Map<string, number>();

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
    const upload = limits.upload_bytes_max + limits.body_bytes_max;
    this.addressBytesMax = Math.max(bytesMax / 4, Math.min(bytesMax / 2, upload));
  }

  /**
   * Takes room for more of a body; false where there is none. `share` is what bodies of its kind may hold together. A body that
   * came in one piece from a known caller is counted without an address, which would cost more than it.
   */
  take(bytes: number, share: number, address: string | undefined, isStranger: boolean): boolean {
    if (address === undefined) {
      if (this.bytes + bytes > share) return false;
      this.bytes += bytes;
      return true;
    }
    const ofAddress = (this.addresses.get(address) ?? 0) + bytes;
    if (this.bytes + bytes > share || ofAddress > this.addressBytesMax) return false;
    if (isStranger) {
      const ofStranger = (this.strangers.get(address) ?? 0) + bytes;
      if (this.strangersBytes + bytes > limits.strangers_bodies_bytes_max) return false;
      if (ofStranger > limits.stranger_bodies_bytes_max) return false;
      this.strangersBytes += bytes;
      this.strangers.set(address, ofStranger);
    }
    this.bytes += bytes;
    this.addresses.set(address, ofAddress);
    return true;
  }

  /** Gives back what was taken. */
  give(bytes: number, address: string | undefined, isStranger: boolean): void {
    this.bytes -= bytes;
    if (address === undefined) return;
    if (isStranger) this.recognise(bytes, address);
    lower(this.addresses, address, bytes);
  }

  /** What was taken for a stranger turns out to come from a caller with a good token. */
  recognise(bytes: number, address: string): void {
    this.strangersBytes -= bytes;
    lower(this.strangers, address, bytes);
  }
}

function lower(counts: Map<string, number>, address: string, bytes: number): void {
  const left = (counts.get(address) ?? 0) - bytes;
  if (left > 0) counts.set(address, left);
  else counts.delete(address);
}

export class BodyBuffer {
  readonly bytesMax: number;
  private readonly room: BodyRoom;
  private readonly addressOf: () => string;
  private address: string | undefined;
  /** Nobody knows yet whether the caller has a good token, or the call needs none. */
  private isStranger = true;
  private heldBytes = 0;
  private parts: Buffer[] = [];
  /** Bytes that arrived, those beyond the bound included. */
  receivedBytes = 0;

  constructor(bytesMax: number, room: BodyRoom, addressOf: () => string) {
    this.bytesMax = bytesMax;
    this.room = room;
    this.addressOf = addressOf;
  }

  /** Copies the chunk, which the engine empties afterwards. Nothing is kept when it tells of a refusal. */
  add(chunk: ArrayBuffer, isLast: boolean): 'kept' | 'too_large' | 'no_room' {
    const { room, isStranger } = this;
    const bytes = chunk.byteLength;
    const inOnePiece = isLast && this.receivedBytes === 0;
    if (isStranger || !inOnePiece) this.address ??= this.addressOf();
    this.receivedBytes += bytes;
    const share = this.receivedBytes > limits.body_bytes_max ? room.bytesMax / 2 : room.bytesMax;
    const tooLarge = this.receivedBytes > this.bytesMax;
    // The end of a chunked body is an empty chunk.
    const isTaken = bytes === 0 || (!tooLarge && room.take(bytes, share, this.address, isStranger));
    if (tooLarge || !isTaken) {
      this.release();
      return tooLarge ? 'too_large' : 'no_room';
    }
    this.heldBytes += bytes;
    if (bytes > 0) this.parts.push(Buffer.from(Buffer.from(chunk)));
    return 'kept';
  }

  /** The caller has a good token. */
  recognise(): void {
    if (!this.isStranger) return;
    this.isStranger = false;
    if (this.address !== undefined) this.room.recognise(this.heldBytes, this.address);
  }

  /** Gives the room back; to be called when the request is over, however it ends. */
  release(): void {
    this.parts = [];
    if (this.heldBytes > 0) this.room.give(this.heldBytes, this.address, this.isStranger);
    this.heldBytes = 0;
  }

  /** The whole of it; leaves nothing behind. */
  take(): Buffer {
    const { parts } = this;
    this.parts = [];
    if (parts.length === 1) return parts[0]!;
    return parts.length === 0 ? noBody : Buffer.concat(parts, this.receivedBytes);
  }
}
