/** Collects a request body as it arrives. Limits its size, and the total size of all bodies. */
import { totalmem } from 'node:os';
import { callLimits } from '../server/limits.js';
import { httpLimits as limits } from './limits.js';

const noBody = Buffer.alloc(0);

/**
 * Returns the default limit for the total size of all bodies: a quarter of the memory that this process may use, within
 * the bounds in `limits`.
 */
export function bodyRoomBytes(): number {
  const allowed = process.constrainedMemory?.() ?? 0;
  const machine = totalmem();
  const memory = allowed > 0 && allowed < machine ? allowed : machine;
  return Math.min(limits.bodies_bytes_max, Math.max(limits.bodies_bytes_min, Math.floor(memory / 4)));
}

export class BodyRoom {
  /**
   * The maximum total size of all bodies in bytes. Uploads, which are bodies above `callLimits.body_bytes_max`, may use
   * half of it.
   */
  readonly bytesMax: number;
  /** How many bytes the bodies from one client address may use. Always enough for one upload. */
  readonly addressBytesMax: number;
  bytes = 0;
  private strangersBytes = 0;
  private readonly idle: Buffer[] = [];
  private lent = 0;
  private readonly addresses = new Map<string, number>();
  private readonly strangers = new Map<string, number>();

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
    const upload = limits.upload_bytes_max + callLimits.body_bytes_max;
    this.addressBytesMax = Math.max(bytesMax / 4, Math.min(bytesMax / 2, upload));
  }

  /**
   * Reserves bytes for a body. Returns false if too few bytes are left. `share` is the limit for bodies of this kind.
   * `address` is absent for a small body that an authenticated caller sends in one piece. Such a body counts only
   * towards the total, because counting by address would take longer than handling the body.
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

  give(bytes: number, address: string | undefined, isStranger: boolean): void {
    this.bytes -= bytes;
    if (address === undefined) return;
    if (isStranger) this.recognise(bytes, address);
    lower(this.addresses, address, bytes);
  }

  /**
   * Stops counting a body against the limits for callers without a valid token. Call this when the caller's token has
   * proved valid.
   */
  recognise(bytes: number, address: string): void {
    this.strangersBytes -= bytes;
    lower(this.strangers, address, bytes);
  }

  /**
   * Returns a reusable buffer of `callLimits.body_bytes_max` bytes. Returns undefined while `limits.reused_bodies_max`
   * buffers are in use. If each large body used new memory, V8 would run a full garbage collection every 64 MiB, which
   * blocks the event loop for 10 to 20 ms.
   */
  borrow(): Buffer | undefined {
    if (this.lent >= limits.reused_bodies_max) return undefined;
    this.lent++;
    return this.idle.pop() ?? Buffer.allocUnsafeSlow(callLimits.body_bytes_max);
  }

  takeBack(memory: Buffer, isReusable: boolean): void {
    this.lent--;
    if (isReusable) this.idle.push(memory);
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
  /** True until the caller has shown a valid token. */
  private isStranger = true;
  private heldBytes = 0;
  private parts: Buffer[] = [];
  private whole: Buffer | undefined;
  receivedBytes = 0;

  /** With `reuses`, reads a body of up to `callLimits.body_bytes_max` into a buffer that later bodies use too. */
  constructor(bytesMax: number, room: BodyRoom, addressOf: () => string, reuses = false) {
    this.bytesMax = bytesMax;
    this.room = room;
    this.addressOf = addressOf;
    if (reuses) this.whole = room.borrow();
  }

  /**
   * Adds a chunk. Copies it, because the engine reuses its memory. After 'too_large' or 'no_room', no part of the body
   * is kept.
   */
  add(chunk: ArrayBuffer, isLast: boolean): 'kept' | 'too_large' | 'no_room' {
    const { room, isStranger } = this;
    const bytes = chunk.byteLength;
    const inOnePiece = isLast && this.receivedBytes === 0;
    if (isStranger || !inOnePiece) this.address ??= this.addressOf();
    this.receivedBytes += bytes;
    const share = this.receivedBytes > callLimits.body_bytes_max ? room.bytesMax / 2 : room.bytesMax;
    const tooLarge = this.receivedBytes > this.bytesMax;
    // A chunked body ends with an empty chunk.
    const isTaken = bytes === 0 || (!tooLarge && room.take(bytes, share, this.address, isStranger));
    if (tooLarge || !isTaken) {
      this.release();
      return tooLarge ? 'too_large' : 'no_room';
    }
    this.heldBytes += bytes;
    if (this.whole !== undefined) Buffer.from(chunk).copy(this.whole, this.receivedBytes - bytes);
    else if (bytes > 0) this.parts.push(Buffer.from(Buffer.from(chunk)));
    return 'kept';
  }

  recognise(): void {
    if (!this.isStranger) return;
    this.isStranger = false;
    if (this.address !== undefined) this.room.recognise(this.heldBytes, this.address);
  }

  /**
   * Releases the reserved bytes. Must be called when the request has ended, for whatever reason. `isRead` says that
   * nobody uses the body any more, so that its memory can be reused.
   */
  release(isRead = true): void {
    this.parts = [];
    if (this.whole !== undefined) this.room.takeBack(this.whole, isRead);
    this.whole = undefined;
    if (this.heldBytes > 0) this.room.give(this.heldBytes, this.address, this.isStranger);
    this.heldBytes = 0;
  }

  /** Returns the whole body, which is valid until `release`. */
  take(): Buffer {
    if (this.whole !== undefined) return this.whole.subarray(0, this.receivedBytes);
    const { parts } = this;
    this.parts = [];
    if (parts.length === 1) return parts[0]!;
    return parts.length === 0 ? noBody : Buffer.concat(parts, this.receivedBytes);
  }
}
