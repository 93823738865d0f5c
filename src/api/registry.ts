/** Every bot method and every application endpoint. Adding one is its file and one line here. */

import { createUser, createUserToken, removeUserTokens } from '../app/admin/users.js';
import { blockBot, unblockBot } from '../app/bots/block.js';
import { createBot } from '../app/bots/create.js';
import { getBot } from '../app/bots/get.js';
import { listBots } from '../app/bots/list.js';
import { regenerateToken } from '../app/bots/regenerate_token.js';
import { startBot } from '../app/bots/start.js';
import { showToken } from '../app/bots/token.js';
import { pressButton } from '../app/chats/callback.js';
import { createChat } from '../app/chats/create.js';
import { getChat as getChatEndpoint } from '../app/chats/get.js';
import { joinChat, leaveChat as leaveChatEndpoint } from '../app/chats/join.js';
import { listChats } from '../app/chats/list.js';
import { listMembers, putMember, removeMember } from '../app/chats/members.js';
import {
  deleteMessage as deleteMessageEndpoint,
  editMessage,
  listMessages,
  postMessage,
} from '../app/chats/messages.js';
import { getSelf } from '../app/me/get.js';
import { openStream } from '../app/stream/open.js';
import { getChat } from '../methods/chats/getChat.js';
import { getChatAdministrators } from '../methods/chats/getChatAdministrators.js';
import { getChatMember } from '../methods/chats/getChatMember.js';
import { getChatMemberCount } from '../methods/chats/getChatMemberCount.js';
import { leaveChat } from '../methods/chats/leaveChat.js';
import { deleteMyCommands } from '../methods/commands/deleteMyCommands.js';
import { getMyCommands } from '../methods/commands/getMyCommands.js';
import { setMyCommands } from '../methods/commands/setMyCommands.js';
import { editMessageReplyMarkup } from '../methods/edits/editMessageReplyMarkup.js';
import { editMessageText } from '../methods/edits/editMessageText.js';
import { getMe } from '../methods/identity/getMe.js';
import { deleteMessage } from '../methods/messages/deleteMessage.js';
import { sendChatAction } from '../methods/messages/sendChatAction.js';
import { sendMessage } from '../methods/messages/sendMessage.js';
import { answerCallbackQuery } from '../methods/updates/answerCallbackQuery.js';
import { deleteWebhook } from '../methods/updates/deleteWebhook.js';
import { getUpdates } from '../methods/updates/getUpdates.js';
import { getWebhookInfo } from '../methods/updates/getWebhookInfo.js';
import type { Endpoint } from './endpoint.js';
import type { Method } from './method.js';

export const methods: readonly Method[] = [
  getMe,
  sendMessage,
  editMessageText,
  editMessageReplyMarkup,
  deleteMessage,
  sendChatAction,
  getUpdates,
  deleteWebhook,
  getWebhookInfo,
  answerCallbackQuery,
  getChat,
  getChatMember,
  getChatAdministrators,
  getChatMemberCount,
  leaveChat,
  setMyCommands,
  getMyCommands,
  deleteMyCommands,
];

export const endpoints: readonly Endpoint[] = [
  createUser,
  createUserToken,
  removeUserTokens,
  getSelf,
  listBots,
  createBot,
  getBot,
  showToken,
  regenerateToken,
  startBot,
  blockBot,
  unblockBot,
  listChats,
  createChat,
  getChatEndpoint,
  joinChat,
  leaveChatEndpoint,
  listMembers,
  putMember,
  removeMember,
  listMessages,
  postMessage,
  editMessage,
  deleteMessageEndpoint,
  pressButton,
  openStream,
];
