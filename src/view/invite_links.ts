/** Builds the invite links that bots see. */
import type { ShownLink } from '../store/chats/members.js';
import { viewStranger } from './users.js';

const shownCodeLength = 4;

const cut = (url: string): string => `${url.slice(0, url.lastIndexOf('/') + 1 + shownCodeLength)}…`;

/** Builds a `ChatInviteLink`. Only the link's creator sees the complete link. */
export function viewInviteLink(link: ShownLink, viewer: number): Readonly<Record<string, unknown>> {
  const { url, creator, creates_join_request, is_primary, is_revoked } = link;
  return {
    invite_link: creator.id === viewer ? url : cut(url),
    creator: viewStranger(creator),
    ...{ creates_join_request, is_primary, is_revoked },
    ...(link.name === null ? {} : { name: link.name }),
    ...(link.expire_date === null ? {} : { expire_date: link.expire_date }),
    ...(link.member_limit === null ? {} : { member_limit: link.member_limit }),
    ...(link.pending > 0 ? { pending_join_request_count: link.pending } : {}),
  };
}
