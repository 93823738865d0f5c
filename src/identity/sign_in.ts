/**
 * Signs people in through an OpenID Connect provider, with the authorization code flow and PKCE (decision 0082). Fronts
 * store nothing about a started sign-in, so any front can finish it.
 */
import type { JWTVerifyGetKey } from 'jose';
import * as oauth from 'oauth4webapi';
import { ApiError, fail } from '../errors.js';
import type { CountSignUp, SignInProvider } from '../server/endpoint.js';
import type { Secrets } from '../store/core/secrets.js';
import type { Store } from '../store/store.js';
import type { Time } from '../time.js';
import { createKeySet } from './key_set.js';
import { identityLimits as limits } from './limits.js';
import { personOf } from './provider.js';
import {
  AnswerError,
  createProviderClient,
  type ProviderClient,
  type ProviderClientOptions,
  type TokenAnswer,
} from './provider_client.js';
import { createVerifier, type Verified } from './verify.js';

export interface SignInOptions extends Omit<ProviderClientOptions, 'time'> {
  readonly name: string;
  readonly scopes: string;
  readonly createUsers: boolean;
  readonly secrets: Pick<Secrets, 'seal' | 'open'>;
  readonly time: Time;
  /**
   * Called when a sign-in fails. The reason contains neither codes nor tokens. `ours` is true if an operator must act.
   */
  readonly onFailure: (reason: string, ours: boolean) => void;
}

/** A started sign-in. Only the browser keeps it. */
interface Flow {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  /** The time until which the sign-in must be finished, as Unix time in ms. */
  readonly until: number;
}

const owner = 'installation:sign-in';

/**
 * The errors with which the provider refuses this person or code, or asks the person to act. Any other error points to
 * wrong settings.
 */
const refusals = new Set([
  ...['access_denied', 'invalid_grant', 'login_required', 'consent_required'],
  ...['interaction_required', 'account_selection_required'],
]);

/** The error codes of oauth4webapi for an ID token that does not belong to this sign-in. */
const wrongToken = new Set<string>([oauth.JWT_CLAIM_COMPARISON, oauth.JWT_TIMESTAMP_CHECK]);

/** Returns whether the provider refused the sign-in. If not, the provider gave no valid answer. */
function isRefusal(error: unknown): boolean {
  if (error instanceof oauth.AuthorizationResponseError || error instanceof oauth.ResponseBodyError)
    return refusals.has(error.error);
  if (error instanceof AnswerError) return true;
  return error instanceof oauth.OperationProcessingError && wrongToken.has(error.code ?? '');
}

/** Describes an error without the provider's answer, which may contain tokens. */
function reasonOf(error: unknown): string {
  if (error instanceof oauth.AuthorizationResponseError || error instanceof oauth.ResponseBodyError)
    return `the provider answered ${error.error.slice(0, 64)}`;
  const { message, cause } = error as Error;
  const code = (cause as NodeJS.ErrnoException | undefined)?.code;
  return typeof code === 'string' ? `${message} (${code})` : message;
}

type Report = SignInOptions['onFailure'];

/** Returns a function that runs a step of a sign-in, reports the provider's errors, and converts them. */
function createAsking(report: Report) {
  return async <T>(step: () => Promise<T>): Promise<T> => {
    try {
      return await step();
    } catch (error) {
      if (error instanceof ApiError && error.kind !== 'unavailable') throw error;
      const isRefused = isRefusal(error);
      report(reasonOf(error), !isRefused);
      return fail(isRefused ? 'sign_in_refused' : 'identity_provider_unavailable');
    }
  };
}

/** Encrypts started sign-ins, so that browsers can keep them. `open` fails with `sign_in_expired`. */
function createFlows({ secrets, time }: Pick<SignInOptions, 'secrets' | 'time'>) {
  return {
    create: (): Flow => ({
      state: oauth.generateRandomState(),
      nonce: oauth.generateRandomNonce(),
      verifier: oauth.generateRandomCodeVerifier(),
      until: time.now() + limits.sign_in_ms_max,
    }),
    seal: (flow: Flow): string => secrets.seal(JSON.stringify(flow), owner).toString('base64url'),
    open(record: string): Flow {
      if (record === '' || record.length > limits.sign_in_record_length_max) fail('sign_in_expired');
      try {
        const flow = JSON.parse(secrets.open(Buffer.from(record, 'base64url'), owner)) as Flow;
        if (time.now() < flow.until) return flow;
      } catch {
        // The record cannot be decrypted, because it was changed or its key was removed.
      }
      return fail('sign_in_expired');
    },
  };
}

/** Returns a function that verifies an ID token with the provider's keys. It throws `sign_in_refused`. */
function createTokenCheck(client: ProviderClient, { clientId, time, onFailure }: SignInOptions) {
  let keys: { readonly url: string; readonly find: JWTVerifyGetKey } | undefined;
  return async (idToken: string): Promise<Verified> => {
    const { jwks_uri: url, issuer } = await client.metadata();
    if (url === undefined) throw new Error('the metadata of the provider name no keys');
    if (keys?.url !== url) {
      const onError = (error: unknown) => onFailure(reasonOf(error), true);
      keys = { url, find: createKeySet({ source: { url }, onError, time }) };
    }
    const verify = createVerifier({ keys: keys.find, issuer, audience: clientId, subjectClaim: 'sub', time });
    const found = await verify(idToken);
    if (found !== null) return found;
    onFailure('the ID token is not valid', false);
    return fail('sign_in_refused');
  };
}

function addressOf(server: oauth.AuthorizationServer, params: Readonly<Record<string, string>>): string {
  if (server.authorization_endpoint === undefined) return fail('identity_provider_unavailable');
  const url = new URL(server.authorization_endpoint);
  if (url.protocol !== 'https:' && url.protocol !== new URL(server.issuer).protocol)
    fail('identity_provider_unavailable');
  for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value);
  return url.href;
}

export function createSignIn(store: Store, options: SignInOptions): SignInProvider {
  const { name, clientId, redirectUri, scopes, createUsers, onFailure } = options;
  const client = createProviderClient(options);
  const asking = createAsking(onFailure);
  const flows = createFlows(options);
  const verified = createTokenCheck(client, options);
  let running = 0;

  async function personFor(tokens: TokenAnswer, count: CountSignUp): Promise<number> {
    const { subject, claims } = await asking(() => verified(tokens.idToken));
    const present = await store.identities.find(subject);
    if (present !== null) return present;
    if (!createUsers) return fail('account_missing');
    const named = claims.name ?? claims.given_name ?? claims.preferred_username;
    // Requests the person's profile if the ID token contains no name, because many providers send the name only with
    // the profile.
    const more = named === undefined ? await asking(() => client.userInfo(tokens.accessToken, subject)) : {};
    const takeBack = await count();
    const made = await store.identities.create(subject, personOf({ ...claims, ...more }, subject), true);
    if (!made.isNew) await takeBack?.();
    return made.id;
  }

  return {
    name,
    async begin() {
      const server = await asking(client.metadata);
      const flow = flows.create();
      const url = addressOf(server, {
        response_type: 'code',
        client_id: clientId,
        redirect_uri: redirectUri,
        scope: scopes,
        state: flow.state,
        nonce: flow.nonce,
        code_challenge: await oauth.calculatePKCECodeChallenge(flow.verifier),
        code_challenge_method: 'S256',
      });
      return { url, record: flows.seal(flow) };
    },
    async finish(record, answer, count) {
      const flow = flows.open(record);
      if (answer.length > limits.sign_in_answer_length_max) fail('sign_in_refused');
      const params = new URLSearchParams(answer);
      // A different `state` means that the browser has started another sign-in, for example in a second window.
      if (params.get('state') !== flow.state) fail('sign_in_expired');
      if (running >= limits.sign_ins_at_once) fail('too_many_requests', { retry_after: 1 });
      running++;
      try {
        return await personFor(await asking(() => client.redeem(params, flow)), count);
      } finally {
        running--;
      }
    },
  };
}
