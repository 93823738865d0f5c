/** telegram-test-api in a process of its own: told by its parent where the package lies, it says on which port it serves. */
import { createRequire } from 'node:module';
import { freePort } from '../../src/dev/processes.js';

export interface PeerTask {
  /** A folder whose `node_modules` holds the package. */
  readonly folder: string;
}

type Server = new (config: { port: number; host: string }) => { start(): Promise<void> };

process.once('message', async ({ folder }: PeerTask) => {
  const TelegramServer = createRequire(`${folder}/`)('telegram-test-api') as Server;
  const port = await freePort();
  await new TelegramServer({ port, host: '127.0.0.1' }).start();
  process.send?.({ port });
});
process.once('disconnect', () => process.exit(0));
