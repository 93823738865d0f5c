/**
 * Provides a sender that may connect to loopback addresses, and receivers with certificates that this sender trusts.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { makeGuard } from '../../src/delivery/outbound/guard.js';
import { makeResolver } from '../../src/delivery/outbound/resolver.js';
import {
  receiverOf,
  Sender,
  type SenderOptions,
  type Receiver as Target,
} from '../../src/delivery/outbound/send.js';
import type { Outcome } from '../../src/delivery/outcome.js';
import { type Certificate, makeCertificate } from '../support/certificates.js';
import { type Receiver, startReceiver } from '../support/receivers.js';

export const certificate = makeCertificate({ names: ['localhost'], addresses: ['127.0.0.1', '::1'] });
export const headers = { 'Content-Type': 'application/json' };
export const body = Buffer.from('{"update_id":1,"message":{"text":"hello"}}');

export type OnFinished = (cleanup: () => Promise<void>) => void;

export function senderFor(onTestFinished: OnFinished, options: Partial<SenderOptions> = {}): Sender {
  const guard = makeGuard({ allow: ['127.0.0.0/8', '::1/128'], resolver: makeResolver() });
  const sender = new Sender({ guard, ...options });
  onTestFinished(() => sender.close());
  return sender;
}

export interface Started {
  readonly receiver: Receiver;
  readonly target: Target;
}

export async function receive(
  onTestFinished: OnFinished,
  answer?: (request: IncomingMessage, response: ServerResponse, body: Buffer) => void,
  shown: Certificate = certificate,
): Promise<Started> {
  const receiver = await startReceiver(shown, answer);
  onTestFinished(() => receiver.close());
  return { receiver, target: receiverOf(`https://127.0.0.1:${receiver.port}/hook?a=1`, shown.cert) };
}

export const said = (outcome: Outcome) =>
  outcome.kind === 'failed' ? `${outcome.reason}: ${outcome.message}` : `answered ${outcome.status}`;
