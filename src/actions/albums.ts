/** Sends albums for bots and people (behaviour §4). */
import { z } from 'zod';
import { fileKinds } from '../content/kinds.js';
import { fail } from '../errors.js';
import { mediaOf } from '../files/file_id.js';
import type { Random } from '../random.js';
import { ruleLimits as limits } from '../rules/limits.js';
import type { MediaType } from '../store/core/codec.js';
import type { StoredMessage } from '../store/core/stored_message.js';
import type { Store } from '../store/store.js';
import { json } from '../wire/schema.js';
import { captionContent } from './compose.js';
import { type MediaContext, takeAll, takeMedia, withMedia } from './media.js';
import { describedMedia, type Sending } from './send_media.js';

const { album_items_min: min, album_items_max: max } = limits;
const list = `an array of ${min} to ${max} media`;

const item = z.object(
  {
    type: z.enum(['photo', 'video', 'audio', 'document'], { error: 'photo, video, audio or document' }),
    ...describedMedia,
  },
  { error: 'an object with type and media' },
);

export const albumMedia = json(
  z.array(item, { error: list }).min(min, { error: list }).max(max, { error: list }),
).describe(`Media of the album, in order: ${min} to ${max}`);

/**
 * Checks that audio files and documents are not mixed with other types. Photos and videos may be mixed. Error:
 * `album_mixed`.
 */
function checkAlbum(items: ReadonlyArray<{ readonly type: MediaType }>): void {
  const alone = items.find(({ type }) => type === 'audio' || type === 'document')?.type;
  if (alone && items.some(({ type }) => type !== alone))
    fail('album_mixed', { name: fileKinds[alone].typeName });
}

/** Returns a random album id. The id is a number as text, because clients expect this form. */
export const newGroup = (random: Random): string => (random.bytes(8).readBigUInt64BE() >> 1n).toString();

/**
 * Sends an album in one script. Either all of its messages are sent, with no other message between them, or none.
 * Errors: `album_mixed`, `fileErrors` and those of `store.messages.sendMany`.
 */
export async function sendAlbum(
  context: MediaContext & { readonly store: Store },
  { chat, sender, rest }: Sending,
  media: z.output<typeof albumMedia>,
): Promise<readonly StoredMessage[]> {
  const { store, files } = context;
  checkAlbum(media);
  const writer = { id: sender.id, isBot: sender.isBot, chat };
  const words = await Promise.all(media.map((one) => captionContent(store, writer, one)));
  const sending = { ...rest, origin: { group: newGroup(store.random) } };
  const takes = () => media.map((one) => takeMedia(context, one.type, 'media', one.media, one));
  const { messages } = await withMedia(
    context,
    () => takeAll(context, takes()),
    (take) =>
      store.messages.sendMany(chat, sender, async () =>
        (await take()).map(({ file }, i) => ({
          content: { ...words[i], media: mediaOf(files, file, media[i]?.has_spoiler) },
          ...sending,
        })),
      ),
  );
  return messages;
}
