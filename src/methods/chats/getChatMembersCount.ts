import type { Method } from '../../api/method.js';
import { getChatMemberCount } from './getChatMemberCount.js';

/** The name that getChatMemberCount had before; Telegraf still calls it so. */
export const getChatMembersCount: Method = {
  ...getChatMemberCount,
  name: 'getChatMembersCount',
  summary: 'The former name of getChatMemberCount, which some libraries still use.',
};
