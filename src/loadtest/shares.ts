/** The share of each kind of call in the load, in percent. */
export const shares = {
  sendMessage: 38,
  editMessageText: 14,
  personWrites: 14,
  react: 12,
  getMe: 6,
  sendChatAction: 6,
  history: 5,
  pinChatMessage: 3,
  getChat: 2,
} as const;
