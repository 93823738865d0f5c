import type { Method } from '../../server/method.js';
import { banChatMember } from './banChatMember.js';

/** The former name of banChatMember. */
export const kickChatMember: Method = {
  ...banChatMember,
  name: 'kickChatMember',
  summary: 'Former name of banChatMember, which some libraries still use.',
};
