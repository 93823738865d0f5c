/** Media as the wire shows them (behaviour §4). */
import type { Media } from '../store/core/codec.js';

/** The value of `photo`, `video`, …: sizes that are not known of media kept by reference are 0. */
export function viewMedia(media: Media, forPeople: boolean): unknown {
  const file = {
    ...{ file_id: media.id, file_unique_id: media.unique },
    // A bot knows what it sent; people have to load it from somewhere.
    ...(forPeople && media.url !== undefined ? { url: media.url } : {}),
  };
  const size = media.size === undefined ? {} : { file_size: media.size };
  const pixels = { width: media.width ?? 0, height: media.height ?? 0 };
  const named = {
    ...(media.name === undefined ? {} : { file_name: media.name }),
    ...(media.mime === undefined ? {} : { mime_type: media.mime }),
  };
  switch (media.type) {
    case 'photo':
      return [{ ...file, ...pixels, ...size }];
    case 'video':
    case 'animation':
      return { ...file, ...pixels, duration: media.duration ?? 0, ...named, ...size };
    case 'audio':
      return {
        ...{ ...file, duration: media.duration ?? 0 },
        ...(media.performer === undefined ? {} : { performer: media.performer }),
        ...(media.title === undefined ? {} : { title: media.title }),
        ...named,
        ...size,
      };
    case 'voice':
      return { ...file, duration: media.duration ?? 0, ...named, ...size };
    case 'document':
      return { ...file, ...named, ...size };
  }
}
