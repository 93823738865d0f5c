import { deflateSync } from 'node:zlib';

const u16 = (n: number) => Buffer.from([n >> 8, n & 255]);
const u32 = (n: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(n);
  return bytes;
};

function crc32(bytes: Buffer): number {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let i = 0; i < 8; i++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

/** Makes a black greyscale picture. `said` is the size in the header, if it differs from the real size. */
export function png(
  width: number,
  height: number,
  said: readonly [width: number, height: number] = [width, height],
): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
    return Buffer.concat([u32(data.length), body, u32(crc32(body))]);
  };
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', Buffer.concat([u32(said[0]), u32(said[1]), Buffer.from([8, 0, 0, 0, 0])])),
    chunk('IDAT', deflateSync(Buffer.alloc((width + 1) * height))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

export function wav(seconds: number): Buffer {
  const samples = Buffer.alloc(8_000 * seconds, 128);
  const head = Buffer.alloc(44);
  head.write('RIFF', 0, 'latin1');
  head.writeUInt32LE(36 + samples.length, 4);
  head.write('WAVEfmt ', 8, 'latin1');
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8_000, 24);
  head.writeUInt32LE(8_000, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write('data', 36, 'latin1');
  head.writeUInt32LE(samples.length, 40);
  return Buffer.concat([head, samples]);
}

const box = (type: string, ...parts: Buffer[]) => {
  const body = Buffer.concat(parts);
  return Buffer.concat([u32(body.length + 8), Buffer.from(type, 'latin1'), body]);
};
const full = (type: string, ...parts: Buffer[]) => box(type, Buffer.alloc(4), ...parts);
const matrix = (turned: boolean) =>
  Buffer.concat(
    (turned
      ? [0, 0x10000, 0, 0xffff0000, 0, 0, 0, 0, 0x40000000]
      : [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000]
    ).map(u32),
  );

/** Makes a video with one frame per second that cannot be decoded. `turned` rotates it by 90 degrees. */
export function mp4(width: number, height: number, seconds: number, turned = false): Buffer {
  const zeros = (n: number) => Buffer.alloc(n);
  const sample = Buffer.concat([
    ...[zeros(6), u16(1), zeros(16), u16(width), u16(height), u32(0x480000), u32(0x480000), zeros(4)],
    ...[u16(1), zeros(32), u16(24), u16(0xffff)],
    box('avcC', Buffer.from([1, 66, 0, 30, 0xff, 0xe0, 0])),
  ]);
  const tables = box(
    'stbl',
    full('stsd', u32(1), box('avc1', sample)),
    full('stts', u32(1), u32(seconds), u32(1_000)),
    full('stsc', u32(1), u32(1), u32(seconds), u32(1)),
    full('stsz', u32(10), u32(seconds)),
    full('stco', u32(1), u32(40)),
  );
  const track = box(
    'trak',
    box(
      'tkhd',
      ...[u32(7), zeros(8), u32(1), zeros(4), u32(seconds * 1_000), zeros(16), matrix(turned)],
      ...[u32(width << 16), u32(height << 16)],
    ),
    box(
      'mdia',
      full('mdhd', zeros(8), u32(1_000), u32(seconds * 1_000), u16(0x55c4), u16(0)),
      full('hdlr', zeros(4), Buffer.from('vide'), zeros(12), Buffer.from('v\0')),
      box(
        'minf',
        box('vmhd', u32(1), zeros(8)),
        box('dinf', full('dref', u32(1), box('url ', u32(1)))),
        tables,
      ),
    ),
  );
  const header = full(
    'mvhd',
    ...[zeros(8), u32(1_000), u32(seconds * 1_000), u32(0x10000), u16(0x100), zeros(10), matrix(false)],
    ...[zeros(24), u32(2)],
  );
  return Buffer.concat([
    box('ftyp', Buffer.from('isom'), u32(512), Buffer.from('isomavc1')),
    box('mdat', zeros(10 * seconds)),
    box('moov', header, track),
  ]);
}
