/**
 * Serves the pages of posts, which people can read without an account (decision 0075). Each client address has a limit
 * on its requests, and a share of the front's time.
 */
import { ApiError, fail } from '../errors.js';
import { type CallContext, inTurn } from './call_context.js';
import type { PostPages, PublicPost } from './endpoint.js';
import { callLimits as limits } from './limits.js';
import type { ApiRequest } from './request.js';
import { createTurns } from './turns.js';

export const postPagePath = '/post/';

const ofAddress = createTurns(
  limits.post_pages_per_address_at_once,
  limits.post_pages_per_address_waiting_max,
);
const ofFront = createTurns(limits.post_pages_at_once, limits.post_pages_waiting_max);

/** The form of a post's external id. Numbers are not accepted, because readers could try them one after another. */
const externalIdForm = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/;

async function findPost({ find }: PostPages, externalId: string): Promise<PublicPost | null> {
  try {
    return await find(externalId);
  } catch (error) {
    if (error instanceof ApiError && error.kind === 'post_not_found') return null;
    throw error;
  }
}

async function showPost(
  { postPages, shares, store }: CallContext,
  request: ApiRequest,
  address: string,
): Promise<void> {
  const pages = postPages ?? fail('not_found');
  await store.fairUse?.reader(address);
  const given = request.path.slice(postPagePath.length).toLowerCase();
  const externalId = externalIdForm.test(given) ? given : '';
  const find = () => ofFront.run(0, () => findPost(pages, externalId));
  const post = externalId === '' ? null : await ofAddress.run(address, find);
  await shares.charge(address, () => pages.show(request, externalId, post));
}

/** Refuses a request for a post's page if the request has a body. */
export const admitPostPage = () => fail('method_not_allowed');

/** For temporary errors, browsers get a page. Other clients get every error as JSON. */
function refuse({ postPages }: CallContext, request: ApiRequest, error: unknown): void {
  const passes = error instanceof ApiError && error.retryAfter !== undefined;
  if (!passes || postPages === undefined || !request.acceptedTypes.includes('text/html')) throw error;
  postPages.refuse(request, error);
}

/**
 * Calls `counted` to count the request, then sends the page of a post. Rejects with `method_not_allowed`, and for
 * clients other than browsers also with `too_many_requests` and `unavailable`.
 */
export async function callPostPage(
  context: CallContext,
  request: ApiRequest,
  counted: () => Promise<void> | undefined,
): Promise<void> {
  request.called = `${postPagePath}{external_id}`;
  const address = context.clientAddress(request);
  try {
    await counted();
    await inTurn(context, request, address, () => showPost(context, request, address));
  } catch (error) {
    refuse(context, request, error);
  }
}
