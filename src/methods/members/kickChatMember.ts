import type { Method } from '../../server/method.js';
import { banChatMember } from './banChatMember.js';

/** Keeps the former name of banChatMember. */
export const kickChatMember: Method = {
  ...banChatMember,
  name: 'kickChatMember',
  summary: 'Does the same as banChatMember. Some libraries still use this former name.',
};
