/** Every scenario, in the order in which they run. */

import type { Scenario } from './scenario.js';
import { manyChats } from './scenarios_growth.js';
import { getMe } from './scenarios_identity.js';
import { editMessageText, pinChatMessage, sendMessage } from './scenarios_messages.js';
import { largePost, largePostAlone, reactions } from './scenarios_posts.js';

export const scenarios: readonly Scenario[] = [
  getMe,
  sendMessage,
  editMessageText,
  pinChatMessage,
  reactions,
  largePost,
  largePostAlone,
  manyChats,
];
