/**
 * Routes requests to their handlers, and decides from the request head whether to accept the body. A bot call normally
 * uses only memory and Redis, and Postgres after a cache miss.
 */
import { fail } from '../errors.js';
import { createMethodFinder } from './bot_calls.js';
import { admitBot, admitFile, callBot, callFile } from './bot_requests.js';
import { type CallContext, type DispatchOptions, inTurn } from './call_context.js';
import { Callers } from './callers.js';
import { createAdminClients, createClientAddress } from './client_address.js';
import { createDownloads } from './downloads.js';
import { admitEndpoint, callEndpoint } from './endpoint_requests.js';
import { admitPostPage, callPostPage, postPagePath } from './post_pages.js';
import type { ApiRequest, RequestHandler } from './request.js';
import { createRouter } from './router.js';
import { Shares } from './shares.js';

export interface Dispatch {
  readonly handle: RequestHandler;
  /**
   * Decides from the request head whether to accept the body. Returns true for a caller with a valid token, and false
   * for a call that needs no token. Otherwise throws or rejects with the error to answer. The token is checked again
   * when the body is complete, because it may have been revoked meanwhile.
   */
  readonly admit: (request: ApiRequest) => boolean | Promise<boolean>;
}

function contextOf(options: DispatchOptions): CallContext {
  const { methods, endpoints, store, files, trustedProxies = [], adminCidrs = [] } = options;
  const clientAddress = createClientAddress(trustedProxies);
  return {
    ...options,
    methodNamed: createMethodFinder(methods),
    findEndpoint: createRouter(endpoints),
    callers: new Callers({ ...options, clientAddress }),
    adminClients: createAdminClients(trustedProxies, adminCidrs),
    shares: new Shares(store.time, store.random),
    downloads: createDownloads(files),
    clientAddress,
  };
}

const bots = { admit: admitBot, call: callBot };
const files = { admit: admitFile, call: callFile };
const application = { admit: admitEndpoint, call: callEndpoint };

/**
 * Returns which kind of caller uses a path. Undefined for pages of posts, for unknown paths and for the process's own
 * paths, such as its metrics.
 */
function callersOf(path: string) {
  if (path.startsWith('/bot')) return bots;
  if (path.startsWith('/file/bot')) return files;
  return path.startsWith('/api/') ? application : undefined;
}

const unknownPath = () => fail('not_found');

export function createDispatch(options: DispatchOptions): Dispatch {
  const context = contextOf(options);
  const { own, clientAddress, store } = context;

  /** Throws `too_many_requests`. */
  const count = (request: ApiRequest) => store.fairUse?.request?.(clientAddress(request));

  return {
    handle(request) {
      const { path } = request;
      if (path.startsWith(postPagePath)) return callPostPage(context, request, () => count(request));
      const known = callersOf(path);
      if (known !== undefined) {
        // Counts only requests without a body. A request with a body was counted when its body was accepted.
        const counted = request.body.length > 0 ? undefined : count(request);
        return counted === undefined
          ? known.call(context, request)
          : counted.then(() => known.call(context, request));
      }
      const answer = Object.hasOwn(own, path) ? own[path] : undefined;
      if (answer === undefined) return inTurn(context, request, clientAddress(request), unknownPath);
      request.called = path;
      return answer(request);
    },
    admit(request) {
      const { path } = request;
      const known = path.startsWith(postPagePath) ? { admit: admitPostPage } : callersOf(path);
      if (known === undefined) return Object.hasOwn(own, path) ? false : fail('not_found');
      const counted = count(request);
      return counted === undefined
        ? known.admit(context, request)
        : counted.then(() => known.admit(context, request));
    },
  };
}
