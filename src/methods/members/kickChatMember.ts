import type { Method } from '../../server/method.js';
import { banChatMember } from './banChatMember.js';

/** Offers banChatMember under its former name. */
export const kickChatMember: Method = {
  ...banChatMember,
  name: 'kickChatMember',
  summary: 'Does the same as banChatMember. Some libraries still use this former name.',
};
