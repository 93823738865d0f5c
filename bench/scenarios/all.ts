/** Lists all scenarios in the order in which they run. To add a scenario, add a file and a line here. */
import { editMessageText } from './edit_message_text.js';
import { forwardMessages } from './forward_messages.js';
import { getMe } from './get_me.js';
import { idlePolls } from './idle_polls.js';
import { largePost, largePostAlone } from './large_post.js';
import { manyBots } from './many_bots.js';
import { manyChats } from './many_chats.js';
import { mix } from './mix.js';
import { pinChatMessage } from './pin_chat_message.js';
import { reactions } from './reactions_hot.js';
import type { Scenario } from './scenario.js';
import { sendMessage, thinSend } from './send_message.js';

export const scenarios: readonly Scenario[] = [
  getMe,
  sendMessage,
  thinSend,
  editMessageText,
  pinChatMessage,
  reactions,
  forwardMessages,
  idlePolls,
  mix,
  largePost,
  largePostAlone,
  manyChats,
  manyBots,
];
