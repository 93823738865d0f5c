/** Every bot method and every application endpoint. Adding one is its file and one line here. */

import { listAdminCalls } from '../endpoints/admin/audit.js';
import { botFigures } from '../endpoints/admin/figures.js';
import {
  listBotDeadLetters,
  rankBots,
  replayDeadLetters,
  showOverview,
} from '../endpoints/admin/operations.js';
import {
  releaseUsername,
  reservedUsernames,
  reserveUsername,
  suspendBot,
  suspendUser,
  unsuspendBot,
  unsuspendUser,
} from '../endpoints/admin/oversight.js';
import {
  createUser,
  createUserToken,
  deleteUser,
  linkUser,
  removeUserTokens,
  unlinkUser,
} from '../endpoints/admin/users.js';
import { listAudit } from '../endpoints/bots/audit.js';
import { blockBot, unblockBot } from '../endpoints/bots/block.js';
import { createBot } from '../endpoints/bots/create.js';
import { deleteBot } from '../endpoints/bots/delete.js';
import { getBot } from '../endpoints/bots/get.js';
import { listBots } from '../endpoints/bots/list.js';
import {
  putAvatar,
  putStartPicture,
  removeAvatar,
  removeStartPicture,
  showAvatar,
  showStartPicture,
} from '../endpoints/bots/pictures.js';
import { showBot } from '../endpoints/bots/profile.js';
import { regenerateToken } from '../endpoints/bots/regenerate_token.js';
import { startBot } from '../endpoints/bots/start.js';
import { showToken } from '../endpoints/bots/token.js';
import { acceptTransfer, declineTransfer, listTransfers, transferBot } from '../endpoints/bots/transfer.js';
import { updateBot } from '../endpoints/bots/update.js';
import { setWriteAccess } from '../endpoints/bots/write_access.js';
import { pressButton } from '../endpoints/chats/callback.js';
import { createChat } from '../endpoints/chats/create.js';
import { forwardMessages as forwardMessagesEndpoint } from '../endpoints/chats/forward.js';
import { getChat as getChatEndpoint } from '../endpoints/chats/get.js';
import { joinChat, leaveChat as leaveChatEndpoint } from '../endpoints/chats/join.js';
import { listChats } from '../endpoints/chats/list.js';
import { listMembers, putMember, removeMember } from '../endpoints/chats/members.js';
import {
  deleteMessage as deleteMessageEndpoint,
  editMessage,
  listMessages,
  postMessage,
} from '../endpoints/chats/messages.js';
import { muteChat, unmuteChat } from '../endpoints/chats/mute.js';
import { pinMessage, unpinMessage } from '../endpoints/chats/pin.js';
import { readChat } from '../endpoints/chats/read.js';
import { downloadFile } from '../endpoints/files/download.js';
import { reportLeaks } from '../endpoints/leaks/report.js';
import { deleteSelf } from '../endpoints/me/delete.js';
import { exportSelf } from '../endpoints/me/export.js';
import { getSelf } from '../endpoints/me/get.js';
import { acceptInvitation, declineInvitation, listInvitations } from '../endpoints/me/invitations.js';
import { showPush, subscribePush, unsubscribePush } from '../endpoints/me/push.js';
import { createToken, listTokens, removeToken } from '../endpoints/me/tokens.js';
import { updateSelf } from '../endpoints/me/update.js';
import { findName } from '../endpoints/names/get.js';
import { getPostEndpoint, listPosts } from '../endpoints/posts/get.js';
import {
  addLike,
  addReaction,
  listReactions,
  removeLike,
  removeReactions,
} from '../endpoints/posts/reactions.js';
import { openStream } from '../endpoints/stream/open.js';
import { openPostsStream } from '../endpoints/stream/posts.js';
import { discardDeadLetters, listDeadLetters } from '../endpoints/webhooks/dead_letters.js';
import { listDeliveries } from '../endpoints/webhooks/deliveries.js';
import { replayUpdates } from '../endpoints/webhooks/replay.js';
import { rotateSigningSecret, showSigningSecret } from '../endpoints/webhooks/secret.js';
import { showWebhook } from '../endpoints/webhooks/state.js';
import { getChat } from '../methods/chats/getChat.js';
import { getChatAdministrators } from '../methods/chats/getChatAdministrators.js';
import { getChatMember } from '../methods/chats/getChatMember.js';
import { getChatMemberCount } from '../methods/chats/getChatMemberCount.js';
import { leaveChat } from '../methods/chats/leaveChat.js';
import { pinChatMessage } from '../methods/chats/pinChatMessage.js';
import { unpinAllChatMessages } from '../methods/chats/unpinAllChatMessages.js';
import { unpinChatMessage } from '../methods/chats/unpinChatMessage.js';
import { deleteMyCommands } from '../methods/commands/deleteMyCommands.js';
import { getMyCommands } from '../methods/commands/getMyCommands.js';
import { setMyCommands } from '../methods/commands/setMyCommands.js';
import { editMessageCaption } from '../methods/edits/editMessageCaption.js';
import { editMessageMedia } from '../methods/edits/editMessageMedia.js';
import { editMessageReplyMarkup } from '../methods/edits/editMessageReplyMarkup.js';
import { editMessageText } from '../methods/edits/editMessageText.js';
import { getFile } from '../methods/files/getFile.js';
import { close } from '../methods/identity/close.js';
import { getMe } from '../methods/identity/getMe.js';
import { getMyDescription } from '../methods/identity/getMyDescription.js';
import { getMyName } from '../methods/identity/getMyName.js';
import { getMyShortDescription } from '../methods/identity/getMyShortDescription.js';
import { logOut } from '../methods/identity/logOut.js';
import { setMyDescription } from '../methods/identity/setMyDescription.js';
import { setMyName } from '../methods/identity/setMyName.js';
import { setMyShortDescription } from '../methods/identity/setMyShortDescription.js';
import { copyMessage } from '../methods/messages/copyMessage.js';
import { copyMessages } from '../methods/messages/copyMessages.js';
import { deleteMessage } from '../methods/messages/deleteMessage.js';
import { deleteMessages } from '../methods/messages/deleteMessages.js';
import { forwardMessage } from '../methods/messages/forwardMessage.js';
import { forwardMessages } from '../methods/messages/forwardMessages.js';
import { sendAnimation } from '../methods/messages/sendAnimation.js';
import { sendAudio } from '../methods/messages/sendAudio.js';
import { sendChatAction } from '../methods/messages/sendChatAction.js';
import { sendDocument } from '../methods/messages/sendDocument.js';
import { sendMediaGroup } from '../methods/messages/sendMediaGroup.js';
import { sendMessage } from '../methods/messages/sendMessage.js';
import { sendPhoto } from '../methods/messages/sendPhoto.js';
import { sendVideo } from '../methods/messages/sendVideo.js';
import { sendVoice } from '../methods/messages/sendVoice.js';
import { createPost } from '../methods/posts/createPost.js';
import { editPost } from '../methods/posts/editPost.js';
import { getPost } from '../methods/posts/getPost.js';
import { setMessageReaction } from '../methods/reactions/setMessageReaction.js';
import { answerCallbackQuery } from '../methods/updates/answerCallbackQuery.js';
import { deleteWebhook } from '../methods/updates/deleteWebhook.js';
import { getUpdates } from '../methods/updates/getUpdates.js';
import { getWebhookInfo } from '../methods/updates/getWebhookInfo.js';
import { setWebhook } from '../methods/updates/setWebhook.js';
import type { Endpoint } from './endpoint.js';
import type { Method } from './method.js';

/** The name that getChatMemberCount had before; Telegraf still calls it so. */
const getChatMembersCount: Method = {
  ...getChatMemberCount,
  name: 'getChatMembersCount',
  summary: 'The former name of getChatMemberCount, which some libraries still use.',
};

export const methods: readonly Method[] = [
  getMe,
  setMyName,
  getMyName,
  setMyDescription,
  getMyDescription,
  setMyShortDescription,
  getMyShortDescription,
  close,
  logOut,
  sendMessage,
  editMessageText,
  editMessageCaption,
  editMessageMedia,
  editMessageReplyMarkup,
  deleteMessage,
  deleteMessages,
  forwardMessage,
  forwardMessages,
  copyMessage,
  copyMessages,
  sendChatAction,
  getUpdates,
  setWebhook,
  deleteWebhook,
  getWebhookInfo,
  answerCallbackQuery,
  getChat,
  pinChatMessage,
  unpinChatMessage,
  unpinAllChatMessages,
  getChatMember,
  getChatAdministrators,
  getChatMemberCount,
  getChatMembersCount,
  leaveChat,
  setMyCommands,
  getMyCommands,
  deleteMyCommands,
  createPost,
  editPost,
  getPost,
  setMessageReaction,
  getFile,
  sendPhoto,
  sendVideo,
  sendAudio,
  sendDocument,
  sendAnimation,
  sendVoice,
  sendMediaGroup,
];

export const endpoints: readonly Endpoint[] = [
  createUser,
  createUserToken,
  removeUserTokens,
  linkUser,
  unlinkUser,
  deleteUser,
  getSelf,
  updateSelf,
  listInvitations,
  acceptInvitation,
  declineInvitation,
  deleteSelf,
  exportSelf,
  showPush,
  subscribePush,
  unsubscribePush,
  listTokens,
  createToken,
  removeToken,
  listBots,
  createBot,
  getBot,
  updateBot,
  showToken,
  regenerateToken,
  showAvatar,
  putAvatar,
  removeAvatar,
  showStartPicture,
  putStartPicture,
  removeStartPicture,
  showBot,
  startBot,
  blockBot,
  unblockBot,
  listChats,
  createChat,
  getChatEndpoint,
  joinChat,
  leaveChatEndpoint,
  readChat,
  muteChat,
  unmuteChat,
  findName,
  listMembers,
  putMember,
  removeMember,
  listMessages,
  postMessage,
  editMessage,
  deleteMessageEndpoint,
  forwardMessagesEndpoint,
  pressButton,
  pinMessage,
  unpinMessage,
  openStream,
  openPostsStream,
  listPosts,
  getPostEndpoint,
  addReaction,
  removeReactions,
  listReactions,
  addLike,
  removeLike,
  downloadFile,
  showWebhook,
  showSigningSecret,
  rotateSigningSecret,
  listDeliveries,
  listDeadLetters,
  discardDeadLetters,
  replayUpdates,
  reportLeaks,
  transferBot,
  listTransfers,
  acceptTransfer,
  declineTransfer,
  setWriteAccess,
  listAudit,
  deleteBot,
  suspendBot,
  unsuspendBot,
  botFigures,
  listAdminCalls,
  showOverview,
  rankBots,
  listBotDeadLetters,
  replayDeadLetters,
  suspendUser,
  unsuspendUser,
  reservedUsernames,
  reserveUsername,
  releaseUsername,
];

/** Where bodies are signed: the server must keep other headers of them, and take larger ones. */
export const leakReportPath = reportLeaks.path;
