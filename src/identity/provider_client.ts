/**
 * Sends the requests of a sign-in to an OpenID Connect provider. Each answer is limited in time and bytes. Only
 * addresses from the provider's metadata are contacted, and redirects are not followed.
 */
import * as oauth from 'oauth4webapi';
import { readBounded } from '../rules/bounded_body.js';
import { shared } from '../shared.js';
import type { Time } from '../time.js';
import { identityLimits as limits } from './limits.js';

export interface ProviderClientOptions {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  readonly redirectUri: string;
  readonly time: Time;
}

export interface TokenAnswer {
  readonly idToken: string;
  readonly accessToken: string;
}

/**
 * Thrown if the query of the callback does not come from this provider. Such a query may be forged.
 */
export class AnswerError extends Error {}

/** Statuses of answers that cannot have a body. */
const bodiless = new Set([101, 204, 205, 304]);

type Fetch = (url: string, init: unknown) => Promise<Response>;

/** Returns the function that sends requests to the provider. */
const createBoundedFetch =
  (time: Time): Fetch =>
  async (url, init) => {
    const signal = time.deadline(limits.provider_answer_ms_max);
    const sent = { ...(init as RequestInit), redirect: 'manual', signal } as const;
    const { status, headers, body } = await fetch(url, sent);
    const text = await readBounded(body, limits.provider_answer_bytes_max, 'answer of the identity provider');
    return new Response(bodiless.has(status) ? null : text, { status, headers });
  };

interface Sending {
  readonly [oauth.customFetch]: Fetch;
  readonly [oauth.allowInsecureRequests]: boolean;
}

/** Returns a function that reads the provider's metadata and caches them. */
function createMetadata(issuer: string, sending: Sending, time: Time) {
  let known: { readonly server: oauth.AuthorizationServer; readonly until: number } | undefined;
  let failed: { readonly error: unknown; readonly until: number } | undefined;
  const discover = shared(async () => {
    try {
      const at = new URL(issuer);
      const response = await oauth.discoveryRequest(at, { ...sending, algorithm: 'oidc' });
      const server = await oauth.processDiscoveryResponse(at, response);
      known = { server, until: time.monotonic() + limits.provider_metadata_ms_max };
      return server;
    } catch (error) {
      failed = { error, until: time.monotonic() + limits.provider_cooldown_ms };
      throw error;
    }
  });
  return async (): Promise<oauth.AuthorizationServer> => {
    const now = time.monotonic();
    if (known !== undefined && now < known.until) return known.server;
    // After a failure, rejects with the same error for a short time. Otherwise each sign-in would send a request to an
    // unavailable provider.
    if (failed !== undefined && now < failed.until) throw failed.error;
    return discover();
  };
}

export type ProviderClient = ReturnType<typeof createProviderClient>;

export function createProviderClient(options: ProviderClientOptions) {
  const { issuer, clientId, clientSecret, redirectUri, time } = options;
  const client: oauth.Client = {
    client_id: clientId,
    [oauth.clockTolerance]: limits.jwt_leeway_ms / 1_000,
  };
  const sending: Sending = {
    [oauth.customFetch]: createBoundedFetch(time),
    // Allows HTTP for this issuer. The settings permit an HTTP issuer only on this machine.
    [oauth.allowInsecureRequests]: issuer.startsWith('http:'),
  };
  const metadata = createMetadata(issuer, sending, time);

  function authentication({ token_endpoint_auth_methods_supported: methods }: oauth.AuthorizationServer) {
    if (clientSecret === undefined) return oauth.None();
    // Uses the `Authorization` header if the provider lists this method or lists no methods, because this method is the
    // default (OpenID Connect Discovery §3).
    const takesHeader = methods === undefined || methods.includes('client_secret_basic');
    return takesHeader ? oauth.ClientSecretBasic(clientSecret) : oauth.ClientSecretPost(clientSecret);
  }

  /**
   * Checks the query that the browser brought back. Throws the library's `AuthorizationResponseError`, or an
   * `AnswerError`.
   */
  function check(server: oauth.AuthorizationServer, answer: URLSearchParams, state: string): URLSearchParams {
    try {
      return oauth.validateAuthResponse(server, client, answer, state);
    } catch (error) {
      throw error instanceof oauth.AuthorizationResponseError
        ? error
        : new AnswerError((error as Error).message);
    }
  }

  return {
    metadata,
    /**
     * Redeems the code in `query`. The provider sent the browser back with this query. Throws the library's errors, or
     * an `AnswerError`.
     */
    async redeem(
      answer: URLSearchParams,
      flow: { readonly state: string; readonly nonce: string; readonly verifier: string },
    ): Promise<TokenAnswer> {
      const server = await metadata();
      const checked = check(server, answer, flow.state);
      const response = await oauth.authorizationCodeGrantRequest(
        server,
        client,
        authentication(server),
        checked,
        redirectUri,
        flow.verifier,
        sending,
      );
      const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, {
        expectedNonce: flow.nonce,
        requireIdToken: true,
      });
      return { idToken: tokens.id_token as string, accessToken: tokens.access_token };
    },
    /** Returns the provider's claims about the person. Empty if the provider has no endpoint for them. */
    async userInfo(accessToken: string, subject: string): Promise<Readonly<Record<string, unknown>>> {
      const server = await metadata();
      if (server.userinfo_endpoint === undefined) return {};
      const response = await oauth.userInfoRequest(server, client, accessToken, sending);
      return oauth.processUserInfoResponse(server, client, subject, response);
    },
  };
}
