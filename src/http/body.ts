/** Collects the body of one request while it arrives, within a bound. */

const noBody = Buffer.alloc(0);

export class BodyBuffer {
  readonly bytesMax: number;
  private parts: Buffer[] = [];
  /** Bytes that arrived, those beyond the bound included. */
  receivedBytes = 0;

  constructor(bytesMax: number) {
    this.bytesMax = bytesMax;
  }

  /** Copies the chunk, which the engine empties afterwards. False, and nothing is kept, above the bound. */
  add(chunk: ArrayBuffer): boolean {
    this.receivedBytes += chunk.byteLength;
    if (this.receivedBytes > this.bytesMax) {
      this.parts = [];
      return false;
    }
    if (chunk.byteLength > 0) this.parts.push(Buffer.from(Buffer.from(chunk)));
    return true;
  }

  /** The whole of it; leaves nothing behind. */
  take(): Buffer {
    const { parts } = this;
    this.parts = [];
    if (parts.length === 1) return parts[0]!;
    return parts.length === 0 ? noBody : Buffer.concat(parts, this.receivedBytes);
  }
}
