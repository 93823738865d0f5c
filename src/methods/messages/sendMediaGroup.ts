import { z } from 'zod';
import { albumMedia, sendAlbum } from '../../actions/albums.js';
import { botSender, chatOfBot, sendingOf, sendingParams } from '../../actions/compose.js';
import { mediaErrors } from '../../actions/send_media.js';
import { defineMethod } from '../../server/method.js';
import { viewMessage } from '../../view/messages.js';
import { messageList } from '../../wire/results.js';

export const sendMediaGroup = defineMethod({
  name: 'sendMediaGroup',
  effect: 'grow',
  summary:
    'Sends an album of 2 to 10 items. An album contains photos and videos, or only audio files, or only documents.',
  params: z.object({ ...sendingParams, media: albumMedia }),
  result: messageList,
  errors: [...mediaErrors, 'album_mixed'],
  handler: async (context, p) => {
    const sender = botSender(context.bot);
    const chat = chatOfBot(context.bot.id, p.chat_id);
    const rest = { ...sendingOf(p), markup: null };
    const sent = await sendAlbum(context, { chat, sender, rest }, p.media);
    return sent.map((message) =>
      viewMessage(message, { isBot: true, bot: sender.profile }, context.store.time),
    );
  },
});
