/**
 * Determines the type, dimensions and duration of a file from its content. This code may hang, so it must run in a
 * separate thread (`measurer.ts`).
 */
import { fileTypeFromBuffer } from 'file-type';
import { type MediaInfo, mediaInfoFactory } from 'mediainfo.js';
import { fileLimits as limits } from './limits.js';

export interface Measured {
  /** Present if the file was not measured because earlier files took too long. */
  readonly late?: true;
  /**
   * The MIME type according to the content. Absent for types that cannot be recognised by their content, such as text.
   */
  readonly mime?: string;
  /** In pixels. */
  readonly width?: number;
  readonly height?: number;
  /** Whole seconds, rounded. */
  readonly duration?: number;
  readonly performer?: string;
  readonly title?: string;
  readonly moving?: boolean;
  readonly sounding?: boolean;
  /** The photo without its metadata. Absent if the photo has no metadata, and for files of other types. */
  readonly cleaned?: Uint8Array;
}

const pixels_max = 100_000;
const duration_s_max = 10_000_000;

type Track = Readonly<Record<string, unknown>>;
let reader: Promise<MediaInfo<'object'>> | undefined;

const within = (value: unknown, max: number): number | undefined => {
  const number = Math.round(Number(value));
  return number >= 1 && number <= max ? number : undefined;
};

/** Removes characters that cannot be stored. Tags may contain any text (behaviour §1). */
function tag(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const text = [...value.replace(/[\p{Cc}\p{Surrogate}]/gu, ' ')].slice(0, limits.file_name_length_max);
  return text.join('').trim() || undefined;
}

function describe(tracks: readonly Track[]): Measured {
  const of = (type: string) => tracks.find((track) => track['@type'] === type);
  const [general, video, audio] = [of('General') ?? {}, of('Video'), of('Audio')];
  const picture = video ?? of('Image');
  const width = within(picture?.Width, pixels_max);
  const height = within(picture?.Height, pixels_max);
  // Players rotate this video by 90 degrees, so its width and height are swapped.
  const turned = Math.abs(Number(video?.Rotation ?? 0)) % 180 === 90;
  const duration = within(general.Duration ?? video?.Duration ?? audio?.Duration, duration_s_max);
  const [performer, title] = [tag(general.Performer), tag(general.Title ?? general.Track)];
  return {
    ...(width && height && (turned ? { width: height, height: width } : { width, height })),
    ...((video || audio) && duration && { duration }),
    ...(performer && { performer }),
    ...(title && { title }),
    ...(video && { moving: true }),
    ...(audio && { sounding: true }),
  };
}

/** Loads the library, so that the first file need not wait for it. */
export function loadReader(): Promise<MediaInfo<'object'>> {
  reader ??= mediaInfoFactory({ format: 'object' });
  return reader;
}

/** Measures a file, which may take long. Never rejects because of the file's content. */
export async function measure(bytes: Uint8Array): Promise<Measured> {
  const type = await fileTypeFromBuffer(bytes).catch(() => undefined);
  const mime = type?.mime.split(';', 1)[0];
  if (mime === undefined || !/^(image|video|audio)\//.test(mime)) return mime === undefined ? {} : { mime };
  try {
    const found = await (await loadReader()).analyzeData(bytes.length, (size, offset) =>
      bytes.subarray(offset, offset + size),
    );
    return { mime, ...describe((found.media?.track ?? []) as unknown as readonly Track[]) };
  } catch {
    // Makes the next file load the library again, because the library's state may be invalid after an error.
    reader = undefined;
    return { mime };
  }
}
