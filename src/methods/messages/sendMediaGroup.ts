import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { botSender, captionContent, chatOfBot, sendingOf, sendingParams } from '../../actions/compose.js';
import { takeAll, takeMedia, withMedia } from '../../actions/media.js';
import { describedMedia, mediaErrors } from '../../actions/send_media.js';
import { fileKinds } from '../../content/kinds.js';
import { fail } from '../../errors.js';
import { mediaOf } from '../../files/file_id.js';
import { ruleLimits as limits } from '../../rules/limits.js';
import { defineMethod } from '../../server/method.js';
import type { MediaType } from '../../store/core/codec.js';
import { viewMessage } from '../../view/messages.js';
import { messageList } from '../../wire/results.js';
import { json } from '../../wire/schema.js';

const { album_items_min: min, album_items_max: max } = limits;
const list = `an array of ${min} to ${max} media`;

const item = z.object(
  {
    type: z.enum(['photo', 'video', 'audio', 'document'], { error: 'photo, video, audio or document' }),
    ...describedMedia,
  },
  { error: 'an object with type and media' },
);

/**
 * Checks that audio files and documents are not mixed with other types. Photos and videos may be mixed. Error:
 * `album_mixed`.
 */
function checkAlbum(items: ReadonlyArray<{ readonly type: MediaType }>): void {
  const alone = items.find(({ type }) => type === 'audio' || type === 'document')?.type;
  if (alone && items.some(({ type }) => type !== alone))
    fail('album_mixed', { name: fileKinds[alone].typeName });
}

/** Returns a random album id. Clients expect a number as text. */
const newGroup = (): string => (randomBytes(8).readBigUInt64BE() >> 1n).toString();

/**
 * Sends an album in one script. Either all messages are sent or none, with no other message between them (behaviour
 * §4).
 */
export const sendMediaGroup = defineMethod({
  name: 'sendMediaGroup',
  effect: 'grow',
  summary: 'Sends an album of 2 to 10 items: photos and videos, only audio files, or only documents.',
  params: z.object({
    ...sendingParams,
    media: json(z.array(item, { error: list }).min(min, { error: list }).max(max, { error: list })).describe(
      `Media of the album, in order: ${min} to ${max}`,
    ),
  }),
  result: messageList,
  errors: [...mediaErrors, 'album_mixed'],
  handler: async (context, p) => {
    const { bot, store, files } = context;
    const sender = botSender(bot);
    const chat = chatOfBot(bot.id, p.chat_id);
    checkAlbum(p.media);
    const words = await Promise.all(
      p.media.map((one) => captionContent(store, { id: bot.id, isBot: true, chat }, one)),
    );
    const sending = { ...sendingOf(p), markup: null, origin: { group: newGroup() } };
    const takes = () => p.media.map((one) => takeMedia(context, one.type, 'media', one.media, one));
    const { messages } = await withMedia(
      context,
      () => takeAll(context, takes()),
      (take) =>
        store.messages.sendMany(chat, sender, async () =>
          (await take()).map(({ file }, i) => ({
            content: { ...words[i], media: mediaOf(files, file, p.media[i]?.has_spoiler) },
            ...sending,
          })),
        ),
    );
    return messages.map((message) => viewMessage(message, { isBot: true, bot: sender.profile }));
  },
});
