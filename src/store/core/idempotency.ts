/**
 * Manages idempotency keys (behaviour §1): claims the key of a call, provides the seed for the call's request ids, and
 * stores the call's answer.
 */
import { storeLimits as limits } from '../limits.js';
import type { StoreContext } from './context.js';
import { type Caller, callerText } from './keys.js';

export interface IdempotentCall {
  readonly caller: Caller;
  readonly method: string;
  readonly key: string;
  /** The parameters of the call in canonical form. Only their keyed fingerprint is stored. */
  readonly parameters: string;
  /** Whether the call adds data. While Redis is full, such calls are rejected. */
  readonly grows: boolean;
}

export type Claim =
  | {
      readonly state: 'run';
      /** The seed for `Store.under`. All attempts of the call get the same seed. */
      readonly seed: string;
      readonly again: boolean;
      /**
       * Stores the encrypted answer for limits.idempotency_ttl_ms. If two attempts store an answer, the first one is
       * kept. An answer over limits.idempotency_answer_bytes_max is not stored. The next attempt then rebuilds it from
       * the records that the scripts stored.
       */
      keep(answer: string): Promise<void>;
      release(): Promise<void>;
    }
  | { readonly state: 'answered'; readonly answer: string }
  | { readonly state: 'pending' | 'other_parameters' | 'too_many' };

export type Idempotency = ReturnType<typeof createIdempotency>;

const nothing = Buffer.alloc(0);

export function createIdempotency({ scripts, keys, secrets, random, uniqueText }: StoreContext) {
  /** Returns a keyed digest, so that the data in Redis reveals neither idempotency keys nor parameters. */
  const fingerprint = (what: string, ...parts: readonly string[]) =>
    secrets.fingerprint(JSON.stringify([`idempotency ${what}`, ...parts]));

  return {
    /**
     * Claims an idempotency key in one round trip. Returns `run` if the key is new or was released, or if its claim is
     * older than limits.idempotency_lease_ms. Returns `pending` while another attempt has the claim.
     */
    async claim({ caller, method, key, parameters, grows }: IdempotentCall): Promise<Claim> {
      const digest = fingerprint('key', callerText(caller), method, key).toString('base64url');
      const partition = keys.partitions.of(caller.id);
      // Refuses the call while Redis is full, because each idempotency key takes memory for a day.
      if (grows && scripts.isFull(partition)) return { state: 'too_many' };
      const claim = keys.idempotency(caller, digest);
      const box = `idempotency:${callerText(caller)}:${digest}` as const;
      const holder = uniqueText();
      const bytes = keys.idempotencyBytes(caller);
      const settle = async (answer: Buffer, size: number) => {
        await scripts.call('idempotency/settle', partition, { claim, bytes }, { holder, answer, size });
      };
      const found = await scripts.call(
        'idempotency/claim',
        partition,
        { claim, live: keys.idempotencyLive(caller), bytes },
        {
          digest,
          fingerprint: fingerprint('parameters', method, parameters),
          seed: random.bytes(15).toString('base64url'),
          holder,
        },
      );
      if (found.status !== 'ok') return { state: found.status };
      if (found.answer !== null) return { state: 'answered', answer: secrets.open(found.answer, box) };
      return {
        state: 'run',
        seed: found.seed,
        again: found.again,
        keep(answer) {
          const size = Buffer.byteLength(answer);
          return settle(
            size > limits.idempotency_answer_bytes_max ? nothing : secrets.seal(answer, box),
            size,
          );
        },
        release: () => settle(nothing, 0),
      };
    },
  };
}
