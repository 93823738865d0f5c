/** Collects the body of one request while it arrives, within a bound of its own and one of all requests together. */
import { limits } from '../limits.js';

const noBody = Buffer.alloc(0);

/** The bodies that one server holds: anybody may send one, since who calls is looked at when it is complete. */
export interface BodyRoom {
  /** What all may hold; bodies above `limits.body_bytes_max`, which are uploads, get half of it. */
  readonly bytesMax: number;
  bytes: number;
}

export class BodyBuffer {
  readonly bytesMax: number;
  private readonly room: BodyRoom;
  private heldBytes = 0;
  private parts: Buffer[] = [];
  /** Bytes that arrived, those beyond the bound included. */
  receivedBytes = 0;

  constructor(bytesMax: number, room: BodyRoom) {
    this.bytesMax = bytesMax;
    this.room = room;
  }

  /** Copies the chunk, which the engine empties afterwards. Nothing is kept when it tells of a refusal. */
  add(chunk: ArrayBuffer): 'kept' | 'too_large' | 'no_room' {
    const { room } = this;
    this.receivedBytes += chunk.byteLength;
    const share = this.receivedBytes > limits.body_bytes_max ? room.bytesMax / 2 : room.bytesMax;
    const tooLarge = this.receivedBytes > this.bytesMax;
    if (tooLarge || room.bytes + chunk.byteLength > share) {
      this.release();
      return tooLarge ? 'too_large' : 'no_room';
    }
    room.bytes += chunk.byteLength;
    this.heldBytes += chunk.byteLength;
    if (chunk.byteLength > 0) this.parts.push(Buffer.from(Buffer.from(chunk)));
    return 'kept';
  }

  /** Gives the room back; to be called when the request is over, however it ends. */
  release(): void {
    this.parts = [];
    this.room.bytes -= this.heldBytes;
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
